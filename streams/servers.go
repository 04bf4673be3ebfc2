package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// ServersSubject is where every server of the store answers for itself. A login of another
// account than the servers' own is answered only if its account imports this service.
const ServersSubject = "$SYS.REQ.SERVER.PING.JSZ"

// serversWait is how long a server may take to answer for itself.
const serversWait = 2 * time.Second

// ServerInfo is what one server of the store says of itself.
type ServerInfo struct {
	Name    string
	Version string
	Host    string // address it listens on; "0.0.0.0" and the like when that is all of them
	// Synced tells that the disk has what the server acknowledged; else it may lack what came
	// in the last SyncEvery.
	Synced    bool
	SyncEvery time.Duration
}

// Servers asks every server of the store, and waits up to 2 s for each to answer. It gives
// none when this login may not ask, or its account does not import the service, and only
// those that answered when some are down.
func (s *Store) Servers(ctx context.Context) ([]ServerInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, serversWait)
	defer cancel()
	nc := s.read.nc
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("ask the servers of the store: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails on a lost connection, where nothing is left to end
	if err := nc.PublishRequest(ServersSubject, inbox, nil); err != nil {
		return nil, fmt.Errorf("ask the servers of the store: %w", err)
	}
	return gatherServers(ctx, sub)
}

// gatherServers takes answers until as many have come as the cluster has servers.
func gatherServers(ctx context.Context, sub *nats.Subscription) (out []ServerInfo, err error) {
	for size := 1; len(out) < size; {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("ask the servers of the store: %w", err)
		}
		var answer serverAnswer
		if err := json.Unmarshal(m.Data, &answer); err != nil {
			return nil, fmt.Errorf("ask the servers of the store: %w", err)
		}
		if answer.Data.Disabled {
			continue // keeps nothing
		}
		size = max(size, answer.Data.Meta.Size)
		out = append(out, answer.info())
	}
	return out, nil
}

// serverAnswer is the part of the server's answer that is of use here.
type serverAnswer struct {
	Server struct {
		Name    string `json:"name"`
		Version string `json:"ver"`
		Host    string `json:"host"`
	} `json:"server"`
	Data struct {
		Disabled bool `json:"disabled"`
		Config   struct {
			SyncAlways   bool          `json:"sync_always"`
			SyncInterval time.Duration `json:"sync_interval"`
		} `json:"config"`
		Meta struct {
			Size int `json:"cluster_size"`
		} `json:"meta_cluster"`
	} `json:"data"`
}

func (a serverAnswer) info() ServerInfo {
	return ServerInfo{Name: a.Server.Name, Version: a.Server.Version, Host: a.Server.Host, Synced: a.Data.Config.SyncAlways, SyncEvery: a.Data.Config.SyncInterval}
}

// Guarded tells that the store wants to know who connects. Anybody who reaches one that does
// not can empty it.
func (s *Store) Guarded() bool { return s.read.nc.AuthRequired() }
