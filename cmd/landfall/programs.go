package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"iter"
	"net"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/api"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// programs is the door of this process for programs: the HTTP API.
type programs struct {
	service     *api.Service
	listener    net.Listener
	tls         *tls.Config // nil: loopback
	connections int
}

// apiAddress is where this process listens for programs, empty when it does not.
func (h *host) apiAddress() string { return cmp.Or(h.self.Proxy.API, h.self.Server.API) }

// listenAPI takes the port of the API, so that one that is taken is found out before anything else
// begins; nil when this process has none. Until it has a dispatcher it says that the log is not in
// sight.
func (h *host) listenAPI() (*programs, error) {
	address := h.apiAddress()
	if address == "" {
		return nil, nil //nolint:nilnil // there is none, and that is well
	}
	service, err := api.New(api.Config{Now: time.Now, NewID: newID, Logger: h.log.With("api", address), Network: h.net.Network.Name, Version: buildInfo().Version})
	if err != nil {
		return nil, err
	}
	p := &programs{service: service, connections: h.net.API.Connections}
	if h.net.Security.TLS.Cert != "" {
		shown, err := listenerCertificate(h.net, h.log)
		if err != nil {
			return nil, err
		}
		p.tls = shown.tls()
		p.tls.NextProtos = []string{"h2", "http/1.1"}
	}
	if p.listener, err = net.Listen("tcp", address); err != nil {
		return nil, fmt.Errorf("hosts.%s.api: %w", h.name(), err)
	}
	h.live.follow(func(now *changeable) {
		service.SetLimits(apiLimitsOf(now.net))
		service.SetAllocating(api.Allocating{Scenes: now.scenes, Fallback: events.HostID(now.net.Allocation.Fallback)})
	})
	h.log.Info("API", "listen", p.listener.Addr().String(), "tls", p.tls != nil)
	return p, nil
}

func apiLimitsOf(n *network.Network) api.Limits {
	a := n.API
	return api.Limits{
		TokenPerSecond: a.TokenPerSecond, TokenBurst: a.TokenBurst, AddressPerSecond: a.AddressPerSecond, AddressBurst: a.AddressBurst, Streams: a.Streams,
	}
}

func (p *programs) run(ctx context.Context) error {
	return p.service.Serve(ctx, p.listener, p.tls, p.connections)
}

// close gives up a port that was never used.
func (p *programs) close() {
	if p != nil {
		_ = p.listener.Close() // Serve has closed it, or nobody will
	}
}

// joinPrograms hands the API over to the dispatcher of this process, and serves it over NATS too.
func (c *crew) joinPrograms(ctx context.Context, fronts *gang) error {
	if c.api == nil {
		return nil
	}
	id, kind := c.host.dispatcherID()
	st, err := c.store.as(ctx, id, c.hostOf(kind))
	if err != nil {
		return err
	}
	backing := api.Backing{Dispatcher: c.dispatcher, Source: logSource{st}, NoTransfers: !c.host.net.Triggers.API.Enabled}
	if c.host.keys.Keyed() {
		c.host.log.Warn("hosts have keys of their own, and this one's may not decide: kill, drain, pause and evacuate are refused over the API (DISABLED), the command line takes them")
	} else {
		control, err := c.store.operator(ctx, id)
		if err != nil {
			return err
		}
		backing.Operator = &actors.Operator{Identity: c.host.identity(events.SourceOperator, id), Log: control}
	}
	c.api.service.Attach(backing)
	fronts.start(func(ctx context.Context) error { return c.api.serveNATS(ctx, st, id) })
	return nil
}

// logSource is the log as the API reads it.
type logSource struct{ *streams.Store }

var _ api.Source = logSource{}

// After implements api.Source.
func (s logSource) After(ctx context.Context, b events.Bucket, seq uint64) iter.Seq2[events.Record, error] {
	return s.History(ctx, b, streams.Range{After: seq})
}
