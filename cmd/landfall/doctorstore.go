package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/cmd/landfall/doctor"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// doctorWithin bounds the whole look at the store.
const doctorWithin = 30 * time.Second

// lookAtStore tells what the store says. Whatever fails here only leaves a gap.
func (g *gatherer) lookAtStore(ctx context.Context, src source) {
	ctx, cancel := context.WithTimeout(ctx, doctorWithin)
	defer cancel()
	s := &doctor.Store{Where: src.String()}
	g.facts.Store = s
	st, err := g.connect(ctx, src)
	if err != nil {
		s.Down, s.Refused = oneLine(err), errors.Is(err, streams.ErrLoginRefused)
		return
	}
	defer func() { _ = st.Close() }() // nothing was written
	s.Stopped = !st.shared
	if err := g.inspect(ctx, st, s); err != nil {
		s.Down = oneLine(err)
		return
	}
	g.tryLogins(ctx, s)
	if err := g.lookAtHosts(ctx, st); err != nil {
		g.unseen("the hosts", "%s", oneLine(err))
	}
}

// connect reaches the store with as many rights as there are at hand.
func (g *gatherer) connect(ctx context.Context, src source) (*reader, error) {
	switch {
	case src.dir != "":
		return src.open(ctx, nil)
	case src.login != nil || len(g.secrets) == 0:
		src.secrets = g.secrets
		return src.connect(ctx, nil)
	}
	src.secrets = g.secrets
	return src.openToDecide(ctx)
}

func (g *gatherer) inspect(ctx context.Context, st *reader, s *doctor.Store) error {
	name, want := "", (*streams.Settings)(nil)
	if g.net != nil {
		settings := settingsOf(g.net)
		name, want = g.net.Network.Name, &settings
	}
	look, err := st.Inspect(ctx, name, want)
	if err != nil {
		return err
	}
	s.Guarded, s.Server = look.Guarded, serverFact(look.Server)
	if s.ClockSeen = !look.Clock.IsZero(); s.ClockSeen {
		s.ClockOff = look.Asked.Sub(look.Clock)
	}
	for _, x := range look.Streams {
		s.Streams = append(s.Streams, streamFact(x, look.Clock))
		if x.ConsumersHidden {
			g.unseen("who reads "+string(x.Bucket), "this login may not ask")
		}
	}
	if g.net == nil || g.net.Store.Mode != "external" {
		return nil // a carrier's server is this program's own
	}
	servers, err := st.Servers(ctx)
	if err != nil {
		g.unseen("the servers of the store", "%s", oneLine(err))
	}
	for _, x := range servers {
		s.Servers = append(s.Servers, serverFact(x))
	}
	return nil
}

func serverFact(x streams.ServerInfo) doctor.Server {
	return doctor.Server{Name: x.Name, Version: x.Version, Host: x.Host, Synced: x.Synced, Every: x.SyncEvery}
}

func streamFact(x streams.StreamLook, now time.Time) doctor.Stream {
	out := doctor.Stream{
		Bucket: x.Bucket, Missing: x.Missing, Foreign: x.Foreign, Drift: x.Drift, DedupeShort: x.DedupeShort, Records: x.Records, Bytes: x.Bytes,
		Want: x.Want, Clustered: x.Clustered, Leader: x.Leader, Hidden: x.ConsumersHidden,
	}
	if x.Records > 0 {
		out.Span = now.Sub(x.Begin)
	}
	for _, c := range x.Copies {
		out.Copies = append(out.Copies, doctor.Copy(c))
	}
	for _, c := range x.Consumers {
		out.Consumers = append(out.Consumers, doctor.Consumer(c))
	}
	return out
}

// loginsAtOnce are tried together.
const loginsAtOnce = 8

// tryLogins logs in as each host that network.yml lists, and tries what it may do.
func (g *gatherer) tryLogins(ctx context.Context, s *doctor.Store) {
	switch {
	case g.net == nil:
		return // who there should be is not known
	case len(g.secrets) == 0:
		g.unseen("the rights of the hosts", "their logins follow from the secret, which is not at hand")
		return
	case s.Stopped || g.net.Store.URL == "":
		g.unseen("the rights of the hosts", "nobody can log in while no host carries the store, or its network is one process")
		return
	}
	ca, err := authorities(g.net)
	if err != nil {
		g.unseen("the rights of the hosts", "%s", oneLine(err))
		return
	}
	users := loginsOf(g.net, g.secrets[:1], events.NewKeyring())
	slices.SortFunc(users, func(a, b embedded.User) int { return strings.Compare(a.Name, b.Name) })
	tried := make([]doctor.Login, len(users))
	var group errgroup.Group
	group.SetLimit(loginsAtOnce)
	var mu sync.Mutex
	for i, u := range users {
		group.Go(func() error {
			login, err := tryLogin(ctx, g.net.Store.URL, ca, u)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				g.unseen("the rights of "+u.Name, "%s", oneLine(err))
			}
			tried[i] = login
			return nil
		})
	}
	_ = group.Wait() // what failed was noted
	s.Logins = tried
}

func tryLogin(ctx context.Context, url, ca string, u embedded.User) (doctor.Login, error) {
	out := doctor.Login{Name: u.Name}
	st, err := streams.Connect(ctx, streams.Config{URL: url, CA: ca, Role: u.Role, ID: u.ID, User: u.Name, Password: u.Password, AnySettings: true})
	if errors.Is(err, streams.ErrLoginRefused) {
		out.Refused = oneLine(err)
		return out, nil
	}
	if err != nil {
		return out, err
	}
	defer func() { _ = st.Close() }()
	for _, p := range streams.Probes(u.Role, u.ID) {
		allowed, err := st.Try(ctx, p)
		switch {
		case err != nil:
			return out, err
		case allowed && !p.Allowed:
			out.Wide = append(out.Wide, p.What)
		case !allowed && p.Allowed:
			out.Narrow = append(out.Narrow, p.What)
		}
	}
	return out, nil
}

// livesWithin is how far back the lives of a host are counted.
const livesWithin = 2 * time.Minute

// lookAtHosts reads the heartbeats.
func (g *gatherer) lookAtHosts(ctx context.Context, st *reader) error {
	if len(g.secrets) == 0 {
		return errors.New("heartbeats are believed only when they are verified, and no secret is at hand")
	}
	o, err := newOpener(trust{secrets: g.secrets})
	if err != nil {
		return err
	}
	n, err := takeCensus(ctx, st, o, g.net)
	if err != nil {
		return err
	}
	lives, err := g.lives(ctx, st, o, n.now)
	if err != nil {
		return err
	}
	differs := map[events.HostID][]string{}
	if g.net != nil {
		for _, c := range n.configs(g.net) {
			differs[c.Host] = append(slices.Clone(c.Fixed), c.Live...)
		}
	}
	byID := map[events.HostID]*doctor.Host{}
	order := []events.HostID{}
	put := func(h doctor.Host) {
		h.Lives, h.Within, h.Differs = len(lives[h.ID]), livesWithin, differs[h.ID]
		if old := byID[h.ID]; old != nil {
			old.Dispatcher, old.Behind, old.BehindFor = h.Dispatcher, h.Behind, h.BehindFor
			old.Lives = max(old.Lives, h.Lives)
			return
		}
		byID[h.ID] = &h
		order = append(order, h.ID)
	}
	for _, b := range n.fleet.Backends {
		put(doctor.Host{ID: b.Server, State: b.State, Age: max(n.now.Sub(b.Seen), 0), Skew: b.Skew, Version: b.Version, Schema: b.Schema, Advertise: b.Advertise})
	}
	for _, p := range n.fleet.Proxies {
		h := doctor.Host{ID: p.Proxy, Dispatcher: true, State: p.State, Age: max(n.now.Sub(p.Seen), 0), Skew: p.Skew, Version: p.Version, Schema: p.Schema}
		if h.Behind, h.BehindFor, err = behindBy(ctx, st, p); err != nil {
			return err
		}
		put(h)
	}
	slices.Sort(order)
	for _, id := range order {
		g.facts.Hosts = append(g.facts.Hosts, *byID[id])
	}
	return nil
}

// lives are the incarnations of each role of each host that have beaten lately; of a host with
// two roles those of the busier one.
func (g *gatherer) lives(ctx context.Context, log history, o *opener, now time.Time) (map[events.HostID]map[events.Incarnation]bool, error) {
	out := map[events.HostID]map[events.Incarnation]bool{}
	roles := map[string]map[events.Incarnation]bool{}
	for rec, err := range log.History(ctx, events.Fleet, streams.Range{Since: now.Add(-livesWithin)}) {
		if err != nil {
			return nil, fmt.Errorf("count lives: %w", err)
		}
		r := o.open(rec)
		if r.refusal != nil || r.verified != genuine {
			continue
		}
		if roles[rec.Key] == nil {
			roles[rec.Key] = map[events.Incarnation]bool{}
		}
		roles[rec.Key][r.event.Source.Incarnation] = true
		if id := r.event.Source.ID; len(roles[rec.Key]) > len(out[id]) {
			out[id] = roles[rec.Key]
		}
	}
	return out, nil
}

// behindBy is how many facts a dispatcher had not folded when it last beat, and how long the
// oldest of them had been in the log by then.
func behindBy(ctx context.Context, log history, p *projections.Proxy) (facts uint64, age time.Duration, err error) {
	for rec, err := range log.History(ctx, events.Transfers, streams.Range{After: p.Folded, Limit: 1}) {
		if err != nil {
			return 0, 0, fmt.Errorf("look behind %s: %w", p.Proxy, err)
		}
		if !rec.Stored.Before(p.Seen) {
			return 0, 0, nil
		}
		age = p.Seen.Sub(rec.Stored)
	}
	if age == 0 {
		return 0, 0, nil
	}
	state, err := log.Info(ctx, events.Transfers)
	if err != nil {
		return 0, 0, err
	}
	return state.Last - min(p.Folded, state.Last), age, nil
}
