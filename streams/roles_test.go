package streams_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
	"github.com/landfall/landfall/streams/streamtest/r1"
)

// roleServer is a store with one login of each role.
func roleServer(t *testing.T) *embedded.Server {
	t.Helper()
	c := testConfig(t)
	c.Users = []embedded.User{login(streams.RoleBackend, "b1"), login(streams.RoleBackend, "b2"), login(streams.RoleDispatcher, "d1"), login(streams.RoleAuditor, "a1"), login(streams.RoleArchivist, "k1"), login(streams.RoleOperator, "o1"), login(streams.RoleProgram, "p1")}
	srv := openServer(t, c)
	ensured(t, srv.Connection())
	return srv
}

func login(role streams.Role, id events.HostID) embedded.User {
	name, password := streams.Login(secret, role, id)
	return embedded.User{Role: role, ID: id, Name: name, Password: password}
}

// as is how a host of a role connects.
func as(srv *embedded.Server, role streams.Role, id events.HostID) streams.Config {
	c := srv.Connection()
	u := login(role, id)
	c.Role, c.ID, c.User, c.Password, c.Carrier = role, id, u.Name, u.Password, false
	c.NoRead = role == streams.RoleBackend
	return c
}

// TestCase095_EachRoleItsSubjects: every role against every kind of subject. Letters: who may.
func TestCase095_EachRoleItsSubjects(t *testing.T) {
	srv := roleServer(t)
	const backend, dispatcher, auditor, archivist, operator, program = "b", "d", "a", "k", "o", "p"
	hosts := []struct {
		letter string
		role   streams.Role
		id     events.HostID
	}{{backend, streams.RoleBackend, "b1"}, {dispatcher, streams.RoleDispatcher, "d1"}, {auditor, streams.RoleAuditor, "a1"}, {archivist, streams.RoleArchivist, "k1"}, {operator, streams.RoleOperator, "o1"}, {program, streams.RoleProgram, "p1"}}
	publish := map[string]string{
		"$KV.transfers.p.t":                        "do",
		"$KV.sessions.p":                           "do",
		"$KV.audit.edge.x":                         "do",
		"$KV.checkpoints.1":                        "do",
		"$KV.limits.p.rtp":                         "do",
		"$KV.routes.m":                             "do",
		"$KV.leases.l":                             "do",
		"$KV.leases.archive.hub.file":              "dko",
		"$KV.control.kill":                         "o",
		"$KV.fleet.backend.b1":                     "bo",
		"$KV.fleet.backend.b2":                     "o",
		"$KV.fleet.proxy.d1":                       "do",
		"$KV.fleet.proxy.d2":                       "o",
		"landfall.news.backend.b1.joined":          "bo",
		"landfall.news.backend.b2.joined":          "o",
		"landfall.ask.backend.b1.request":          "bo",
		"landfall.ask.backend.b2.request":          "o",
		"landfall.backend.b1.reserve":              "do",
		"landfall.backend.b2.move":                 "do",
		"landfall.dispatcher.d2.holds":             "do",
		"landfall.trigger.arena-end":               "do",
		"landfall.anything":                        "o",
		"landfall.api.fleet.get":                   "po",
		"$SRV.PING":                                "p",
		"landfall.store.durable":                   "do",
		"_INBOX.dispatcher.d1.x":                   "o",
		"_INBOX.backend.b2.x":                      "o",
		"$JS.API.STREAM.INFO.KV_transfers":         "dako",
		"$JS.API.STREAM.MSG.GET.KV_transfers":      "dako",
		"$JS.API.CONSUMER.CREATE.KV_transfers.c.x": "dako",
		"$JS.API.CONSUMER.MSG.NEXT.KV_transfers.c": "dako",
		"$JS.API.CONSUMER.DELETE.KV_transfers.c":   "dako",
		"$JS.API.DIRECT.GET.KV_transfers":          "o",
		"$JS.API.STREAM.CREATE.KV_none":            "o",
		"$JS.API.STREAM.UPDATE.KV_none":            "o",
		"$JS.API.STREAM.DELETE.KV_none":            "o",
		"$JS.API.STREAM.PURGE.KV_none":             "o",
		"$JS.API.STREAM.MSG.DELETE.KV_none":        "o",
		"$JS.API.STREAM.RESTORE.KV_none":           "o",
		"$JS.API.STREAM.SNAPSHOT.KV_none":          "o",
		"$JS.API.CONSUMER.DURABLE.CREATE.KV_x.y":   "o",
		"$SYS.REQ.SERVER.PING":                     "",
		"$SYS.REQ.SERVER.PING.JSZ":                 "o",
		"anything":                                 "",
	}
	subscribe := map[string]string{
		"landfall.backend.b1.reserve":      "bako",
		"landfall.backend.b2.reserve":      "ako",
		"landfall.backend.d1.reserve":      "dako",
		"landfall.backend.>":               "ako",
		"landfall.ask.backend.*.request":   "dako",
		"landfall.news.backend.*.joined":   "dako",
		"landfall.dispatcher.d1.holds":     "dako",
		"landfall.dispatcher.d2.holds":     "ako",
		"landfall.trigger.*":               "dako",
		"landfall.api.>":                   "do", // requests of programs carry their tokens
		"landfall.>":                       "o",
		"$SRV.>":                           "do",
		"_INBOX.backend.b1.>":              "b",
		"_INBOX.backend.b2.>":              "",
		"_INBOX.dispatcher.d1.>":           "d",
		"_INBOX.>":                         "",
		"$KV.>":                            "",
		"$KV.transfers.>":                  "",
		"$JS.API.>":                        "",
		"$JS.EVENT.ADVISORY.>":             "",
		"$SYS.>":                           "",
		">":                                "",
		"landfall.ask.backend.b1.*":        "dako",
		"landfall.backend.b1.reserve qq":   "bako",
		"landfall.ask.backend.*.request q": "dako",
	}
	for _, h := range hosts {
		t.Run(string(h.role), func(t *testing.T) {
			c := as(srv, h.role, h.id)
			for subject, who := range publish {
				if got, want := mayPublish(t, c, subject), strings.Contains(who, h.letter); got != want {
					t.Errorf("publish %s: allowed %v, want %v", subject, got, want)
				}
			}
			for subject, who := range subscribe {
				if got, want := maySubscribe(t, c, subject), strings.Contains(who, h.letter); got != want {
					t.Errorf("subscribe %s: allowed %v, want %v", subject, got, want)
				}
			}
		})
	}
}

// dialBare connects without our client's care.
func dialBare(t *testing.T, c streams.Config) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(c.InProcess), nats.UserInfo(c.User, c.Password),
		nats.CustomInboxPrefix(streams.InboxPrefix(c.Role, c.ID)), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	return nc
}

// allowed does one act on a connection of its own: the server has refused it by the time
// it answers a ping.
func allowed(t *testing.T, c streams.Config, act func(nc *nats.Conn) error) bool {
	t.Helper()
	nc := dialBare(t, c)
	defer nc.Close()
	if err := act(nc); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := nc.LastError(); err != nil && !errors.Is(err, nats.ErrPermissionViolation) {
		t.Fatal(err)
	}
	return nc.LastError() == nil
}

func mayPublish(t *testing.T, c streams.Config, subject string) bool {
	t.Helper()
	return allowed(t, c, func(nc *nats.Conn) error {
		m := nats.NewMsg(subject)
		m.Header.Set(nats.ExpectedLastSeqHdr, "999999") // so that nothing is stored
		return nc.PublishMsg(m)
	})
}

func maySubscribe(t *testing.T, c streams.Config, subject string) bool {
	t.Helper()
	return allowed(t, c, func(nc *nats.Conn) error {
		name, queue, _ := strings.Cut(subject, " ")
		if queue == "" {
			_, err := nc.SubscribeSync(name)
			return err
		}
		_, err := nc.QueueSubscribeSync(name, queue)
		return err
	})
}

// TestBackendBeatsWithoutReading: a backend learns its last beat from the refusal, and
// everything it needs works: beats, news, requests, answers.
func TestBackendBeatsWithoutReading(t *testing.T) {
	srv := roleServer(t)
	b, d := connect(t, as(srv, streams.RoleBackend, "b1")), connect(t, as(srv, streams.RoleDispatcher, "d1"))
	own := events.BackendKey("b1")
	first := mustAppend(t, b, message(events.Fleet, own, 0))
	second := mustAppend(t, b, message(events.Fleet, own, first))
	restarted := connect(t, as(srv, streams.RoleBackend, "b1"))
	_, err := restarted.Append(t.Context(), message(events.Fleet, own, 0))
	failed := wantReason(t, err, events.Conflict)
	if failed.Last != second {
		t.Fatalf("the refusal names %d, want %d", failed.Last, second)
	}
	mustAppend(t, restarted, message(events.Fleet, own, failed.Last))
	_, err = b.Append(t.Context(), message(events.Fleet, own, second))
	wantReason(t, err, events.Conflict) // the earlier life learns that there is a newer one
	f := tailing(t, d, events.Fleet, events.TailStart{Mode: events.TailLastPerKey})
	if r := receive(t, "beat", f.records); r.Key != own || r.Seq != failed.Last+1 {
		t.Errorf("dispatcher sees %+v", r)
	}
	askBothWays(t, b, d)
}

func askBothWays(t *testing.T, b, d *streams.Store) {
	t.Helper()
	echo := func(_ context.Context, subject string, _ events.Wire) events.Wire {
		return events.Wire{Body: []byte(subject)}
	}
	serveUntilEnd(t, b, events.ToBackend("b1", "*"), echo)
	serveUntilEnd(t, d, events.AskOf("*", "*"), echo)
	for _, c := range []struct {
		asker   *streams.Store
		subject string
	}{{d, events.ToBackend("b1", events.VerbReserve)}, {b, events.AskOf("b1", events.VerbArrived)}} {
		if w, err := c.asker.Ask(t.Context(), c.subject, events.Wire{}); err != nil || string(w.Body) != c.subject {
			t.Errorf("ask %s: %q %v", c.subject, w.Body, err)
		}
	}
}

func serveUntilEnd(t *testing.T, st *streams.Store, subject string, handle func(context.Context, string, events.Wire) events.Wire) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- st.Serve(ctx, subject, "q", func() { close(ready) }, handle) }()
	t.Cleanup(func() { cancel(); <-ended })
	receive(t, "subscription", ready)
}

// TestBackendIsRefusedAtOnce: what is not permitted fails as that, not as a time-out.
func TestBackendIsRefusedAtOnce(t *testing.T) {
	srv := roleServer(t)
	b := connect(t, as(srv, streams.RoleBackend, "b1"))
	_, err := b.Append(t.Context(), message(events.Transfers, key(1, 1), 0))
	wantReason(t, err, events.NotAllowed)
	_, err = b.Append(t.Context(), message(events.Fleet, events.BackendKey("b2"), 0))
	wantReason(t, err, events.NotAllowed)
	if _, _, err := b.Last(t.Context(), events.Transfers, key(1, 1)); err == nil {
		t.Error("a backend read the log")
	}
	if _, err := b.Ask(t.Context(), events.AskOf("b2", events.VerbState), events.Wire{}); err == nil || errors.Is(err, events.ErrNobody) {
		t.Errorf("asking in another's name: %v", err)
	}
	for name, value := range map[string]string{"Nats-Rollup": "all", "Nats-TTL": "1s", "Nats-Schedule": "@at 2100-01-01T00:00:00Z"} {
		m := message(events.Fleet, events.BackendKey("b1"), 0)
		m.Header[name] = value
		_, err := b.Append(t.Context(), m)
		wantReason(t, err, events.NotAllowed)
	}
}

func TestLoginsAreDerived(t *testing.T) {
	user, password := streams.Login(secret, streams.RoleBackend, "b1") // with the id of the secret
	_, other := streams.Login(secret, streams.RoleDispatcher, "b1")
	_, third := streams.Login([]byte("another secret of thirty-two byte"), streams.RoleBackend, "b1")
	if user != "backend.b1.c46336ed" || len(password) != 43 || password == other || password == third {
		t.Errorf("login %s %s, %s, %s", user, password, other, third)
	}
	srv := roleServer(t)
	c := as(srv, streams.RoleBackend, "b1")
	c.InProcess, c.URL, c.Password = nil, srv.URL(), other
	if _, err := streams.Connect(t.Context(), c); err == nil || !strings.Contains(err.Error(), "refused the login") {
		t.Errorf("wrong password: %v", err)
	}
}

// TestBackendKnowsItsOwnBeat: a backend may not read the log, and still learns whether the beat
// that it got no acknowledgement of has landed, or somebody else's was there first.
func TestBackendKnowsItsOwnBeat(t *testing.T) {
	srv := roleServer(t)
	c := as(srv, streams.RoleBackend, "b1")
	g := r1.NewCable(c.InProcess, 0)
	c.InProcess = g
	st, other := connect(t, c), connect(t, as(srv, streams.RoleBackend, "b1"))
	beat := func(prev uint64) events.Message { return message(events.Fleet, events.BackendKey("b1"), prev) }

	first := insist(t, st, beat(0))
	g.LoseAck()
	second := insist(t, st, beat(first))
	if second != first+1 {
		t.Fatalf("landed at %d, want %d", second, first+1)
	}
	for name, again := range map[string]func() uint64{
		"the old guard":        func() uint64 { return first },
		"the guard of its own": func() uint64 { return second },
	} {
		m := beat(second)
		landed := insist(t, st, m)
		m.Prev = again()
		if seq := insist(t, other, m); seq != landed {
			t.Errorf("again on %s: landed at %d, want %d", name, seq, landed)
		}
		second = landed
	}

	foreign := insist(t, other, beat(second))
	for range 2 { // also when it comes again
		_, err := st.Append(t.Context(), beat(second))
		failed, ok := errors.AsType[*events.AppendError](err)
		if !ok || failed.Reason != events.Conflict || failed.Last != foreign {
			t.Errorf("after another one's beat: %v, want a conflict with %d", err, foreign)
		}
	}
	mine := beat(foreign)
	insist(t, st, mine)
	foreign = insist(t, other, beat(foreign+1))
	if seq := insist(t, st, mine); seq != foreign-1 {
		t.Errorf("the own beat, below another one's: %d, want %d", seq, foreign-1)
	}
}
