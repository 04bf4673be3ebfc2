package embedded_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

const inspectSecret = "a secret of thirty-two bytes, or more"

func lookOf(t *testing.T, in streams.Inspection, b events.Bucket) streams.StreamLook {
	t.Helper()
	i := slices.IndexFunc(in.Streams, func(l streams.StreamLook) bool { return l.Bucket == b })
	if i < 0 {
		t.Fatalf("%s was not looked at: %+v", b, in)
	}
	return in.Streams[i]
}

// TestInspect: a store as it should be, one that nobody has made yet, one that somebody changed,
// and one of another network.
func TestInspect(t *testing.T) {
	users := loginsOf([]byte(inspectSecret))
	ns := external(t, "always", users)
	st := connectAs(t, ns, users[0], true)
	inspect := func(network string, want *streams.Settings) streams.Inspection {
		t.Helper()
		in, err := st.Inspect(t.Context(), network, want)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	for _, l := range inspect("net", nil).Streams {
		if !l.Missing {
			t.Errorf("nothing was made yet: %+v", l)
		}
	}
	if err := st.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	in := inspect("net", &streams.Settings{})
	if in.Server.Version != server.VERSION || !in.Guarded || in.Asked.Sub(in.Clock).Abs() > 5*time.Second || len(in.Streams) != len(events.Buckets) {
		t.Errorf("%+v", in)
	}
	for _, l := range in.Streams {
		if l.Missing || l.Foreign != "" || len(l.Drift) > 0 || l.DedupeShort > 0 || l.Want != 1 || len(l.Copies) > 0 || len(l.Consumers) > 0 || l.ConsumersHidden {
			t.Errorf("%+v", l)
		}
	}
	for _, l := range inspect("other", nil).Streams {
		if !strings.Contains(l.Foreign, `network "net"`) || l.Drift != nil {
			t.Errorf("%+v", l)
		}
	}
	if l := lookOf(t, inspect("net", &streams.Settings{Retention: time.Hour}), events.Transfers); !slices.Equal(l.Drift, []string{"maxAge is 720h0m0s, want 1h0m0s"}) {
		t.Errorf("%+v", l)
	}
	change(t, ns, users[0])
	in = inspect("net", &streams.Settings{})
	if l := lookOf(t, in, events.Transfers); l.DedupeShort != 10*time.Second || !slices.Contains(l.Drift, "duplicates is 10s, want 2m0s") {
		t.Errorf("%+v", l)
	}
	if l := lookOf(t, in, events.Sessions); len(l.Consumers) != 1 || l.Consumers[0].Name != "metrics" {
		t.Errorf("%+v", l)
	}
}

// change is what somebody does who has the operator's login and a tool of NATS.
func change(t *testing.T, ns *server.Server, u embedded.User) {
	t.Helper()
	nc, err := nats.Connect(ns.ClientURL(), nats.UserInfo(u.Name, u.Password), nats.CustomInboxPrefix(streams.InboxPrefix(u.Role, u.ID)))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "KV_transfers")
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.Duplicates = 10 * time.Second
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateConsumer(t.Context(), "KV_sessions", jetstream.ConsumerConfig{Durable: "metrics"}); err != nil {
		t.Fatal(err)
	}
}

// TestInspectSeesWhoReads: a tail under its own name, and a login that may not ask.
func TestInspectSeesWhoReads(t *testing.T) {
	users := loginsOf([]byte(inspectSecret))
	ns := external(t, "always", users)
	st := connectAs(t, ns, users[0], true)
	if err := st.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	dispatcher := connectAs(t, ns, users[2], false)
	ctx, cancel := context.WithCancel(t.Context())
	live := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = dispatcher.Tail(ctx, events.Transfers, events.TailStart{}, listener(live))
	}()
	<-live
	in, err := st.Inspect(t.Context(), "net", nil)
	if err != nil {
		t.Fatal(err)
	}
	if l := lookOf(t, in, events.Transfers); len(l.Consumers) != 1 || !strings.HasPrefix(l.Consumers[0].Name, streams.ReadsAs(streams.RoleDispatcher, "proxy-1")) {
		t.Errorf("%+v", l)
	}
	cancel()
	<-ended
	auditor := connectAs(t, ns, users[1], false)
	if in, err = auditor.Inspect(t.Context(), "net", nil); err != nil || !lookOf(t, in, events.Transfers).ConsumersHidden {
		t.Errorf("%+v, %v", in, err)
	}
}

// TestInspectACluster: every copy is named, and one that is gone is told.
func TestInspectACluster(t *testing.T) {
	nodes, err := embedded.Cluster(t.Context(), 3, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nodes.Close() })
	c := nodes.Connection(0)
	c.Network, c.Creator, c.Carrier, c.Settings = "net", "up", true, streams.Settings{Replicas: 3}
	st, err := streams.Connect(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if err := st.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	in, err := st.Inspect(t.Context(), "net", &streams.Settings{Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	l := lookOf(t, in, events.Transfers)
	if !l.Clustered || l.Leader == "" || len(l.Copies) != 2 || l.Want != 3 || len(l.Drift) > 0 {
		t.Errorf("%+v", l)
	}
}

// TestProbes: every role may do what it is for and nothing else, on an embedded server and on
// one that was given the printed logins; and trying leaves nothing behind.
func TestProbes(t *testing.T) {
	users := loginsOf([]byte(inspectSecret))
	own := config(t)
	own.Users, own.Listen, own.Network = users, "127.0.0.1:0", "net"
	srv := open(t, own)
	ensured(t, srv)
	ns := external(t, "always", users)
	if err := connectAs(t, ns, users[0], true).Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, url := range map[string]string{"embedded": srv.URL(), "external": ns.ClientURL()} {
		operator := connectTo(t, url, users[0])
		for _, u := range users {
			t.Run(name+" "+u.Name, func(t *testing.T) {
				st := connectTo(t, url, u)
				probes := streams.Probes(u.Role, u.ID)
				if len(probes) == 0 {
					t.Fatal("nothing is tried")
				}
				for _, p := range probes {
					if allowed, err := st.Try(t.Context(), p); err != nil || allowed != p.Allowed {
						t.Errorf("%s: allowed %v, %v; want %v", p.What, allowed, err, p.Allowed)
					}
				}
				in, err := operator.Inspect(t.Context(), "net", nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range in.Streams {
					if l.Last > 0 || l.Missing {
						t.Errorf("trying left something in %s: %+v", l.Bucket, l)
					}
				}
			})
		}
	}
}

// TestProbesTellWrongRights: a backend that was given a dispatcher's rights, and the reverse.
func TestProbesTellWrongRights(t *testing.T) {
	right := loginsOf([]byte(inspectSecret))
	wrong := slices.Clone(right)
	wrong[2].Role, wrong[3].Role = streams.RoleBackend, streams.RoleDispatcher
	ns := external(t, "always", wrong)
	if err := connectAs(t, ns, right[0], true).Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := func(u embedded.User) (wide, narrow int) {
		st := connectTo(t, ns.ClientURL(), embedded.User{Role: wrongRole(u.Role), ID: u.ID, Name: u.Name, Password: u.Password})
		for _, p := range streams.Probes(u.Role, u.ID) {
			allowed, err := st.Try(t.Context(), p)
			switch {
			case err != nil:
				t.Error(err)
			case allowed && !p.Allowed:
				wide++
			case !allowed && p.Allowed:
				narrow++
			}
		}
		return wide, narrow
	}
	if wide, narrow := told(right[3]); wide < 3 || narrow != 0 {
		t.Errorf("a backend with too many rights: %d too wide, %d too narrow", wide, narrow)
	}
	if wide, narrow := told(right[2]); wide != 0 || narrow < 5 {
		t.Errorf("a dispatcher with too few: %d too wide, %d too narrow", wide, narrow)
	}
}

// wrongRole is whose inbox the server lets the login listen on.
func wrongRole(r streams.Role) streams.Role {
	if r == streams.RoleBackend {
		return streams.RoleDispatcher
	}
	return streams.RoleBackend
}

func connectTo(t *testing.T, url string, u embedded.User) *streams.Store {
	t.Helper()
	st, err := streams.Connect(t.Context(), streams.Config{URL: url, Role: u.Role, ID: u.ID, User: u.Name, Password: u.Password, AnySettings: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// listener follows a tail and only says when it is live.
type listener chan struct{}

func (l listener) Begin(events.StreamState, bool) {}
func (l listener) Record(events.Record) error     { return nil }
func (l listener) Live(uint64)                    { close(l) }
func (l listener) Blind(error)                    {}
