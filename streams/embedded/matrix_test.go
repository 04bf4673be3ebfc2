package embedded_test

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// matrix is who may do what with a key of its own: b backend, d dispatcher, a auditor, o operator.
var matrix = []struct{ op, subject, who string }{
	{"publish", "$KV.transfers.p.t", "do"},
	{"publish", "$KV.control.kill", "o"},
	{"publish", "$KV.control.identity.d1", "o"},
	{"publish", "$KV.fleet.backend.b1", "bo"},
	{"publish", "$KV.fleet.backend.b2", "o"},
	{"publish", "$KV.fleet.proxy.d1", "do"},
	{"publish", "$KV.fleet.proxy.d2", "o"},
	{"publish", "landfall.ask.backend.b1.request", "bo"},
	{"publish", "landfall.ask.backend.b2.request", "o"},
	{"publish", "landfall.news.backend.b2.joined", "o"},
	{"publish", "landfall.backend.b1.move", "do"},
	{"publish", streams.DurableSubject, "do"},
	{"publish", streams.IdentitiesSubject, "o"},
	{"publish", "_INBOX.dispatcher.d1.x", "o"},
	{"publish", "$JS.API.STREAM.INFO.KV_transfers", "dao"},
	{"publish", "$JS.API.STREAM.MSG.GET.KV_transfers", "dao"},
	{"publish", "$JS.API.DIRECT.GET.KV_transfers", "o"},
	{"publish", "$JS.API.CONSUMER.CREATE.KV_transfers.c.x", "dao"},
	{"publish", "$JS.API.STREAM.CREATE.KV_none", "o"},
	{"publish", "$JS.API.STREAM.UPDATE.KV_none", "o"},
	{"publish", "$JS.API.STREAM.PURGE.KV_none", "o"},
	{"publish", "$JS.API.STREAM.DELETE.KV_none", "o"},
	{"publish", "$JS.API.STREAM.MSG.DELETE.KV_none", "o"},
	{"subscribe", "landfall.backend.b1.reserve", "bao"},
	{"subscribe", "landfall.backend.b2.reserve", "ao"},
	{"subscribe", "landfall.ask.backend.*.request", "dao"},
	{"subscribe", "_INBOX.backend.b1.>", "b"},
	{"subscribe", "_INBOX.dispatcher.d1.>", "d"},
	{"subscribe", "_INBOX.>", ""},
	{"subscribe", "$KV.transfers.>", ""},
	{"subscribe", "$JS.API.>", ""},
	{"subscribe", "$SYS.>", ""},
	{"subscribe", ">", ""},
}

// TestMatrixOfKeys: each cell on the embedded store and on a nats-server with the generated
// configuration; and what no header of a login that may append can do to the log.
func TestMatrixOfKeys(t *testing.T) {
	hosts := map[string]streams.HostKey{}
	var users []embedded.User
	for letter, x := range map[string]struct {
		role streams.Role
		id   events.HostID
	}{"b": {streams.RoleBackend, "b1"}, "d": {streams.RoleDispatcher, "d1"}, "a": {streams.RoleAuditor, "a1"}, "o": {streams.RoleOperator, "o1"}} {
		k, u := keyed(t, x.role, x.id)
		hosts[letter], users = k, append(users, u)
	}
	c := config(t)
	c.Listen, c.Users = "127.0.0.1:0", users
	for where, url := range map[string]string{"embedded": open(t, c).URL(), "external": external(t, "always", users).ClientURL()} {
		t.Run(where, func(t *testing.T) {
			operator := hosts["o"]
			st, err := streams.Connect(t.Context(), streams.Config{URL: url, Role: operator.Role, ID: operator.ID, Key: &operator, Network: "net", Creator: "up", Carrier: true})
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			if err := st.Ensure(t.Context()); err != nil {
				t.Fatal(err)
			}
			for letter, k := range hosts {
				for _, cell := range matrix {
					if got, want := permitted(t, url, k, cell.op, cell.subject), strings.Contains(cell.who, letter); got != want {
						t.Errorf("%s may %s %s: %v, want %v", k.Role, cell.op, cell.subject, got, want)
					}
				}
			}
			put(t, st, "p", 0)
			noHeaderErases(t, url, hosts["d"])
			if n := count(t, st); n != 1 {
				t.Errorf("%d facts after all of it, want 1", n)
			}
		})
	}
}

// dialBare connects without our client's care.
func dialBare(t *testing.T, url string, k streams.HostKey) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, nats.Nkey(k.Public(), func(nonce []byte) ([]byte, error) { return ed25519.Sign(k.Private, nonce), nil }),
		nats.CustomInboxPrefix(streams.InboxPrefix(k.Role, k.ID)), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	return nc
}

// permitted does one act on a connection of its own: the server has refused it by the time it
// answers a ping.
func permitted(t *testing.T, url string, k streams.HostKey, op, subject string) bool {
	t.Helper()
	nc := dialBare(t, url, k)
	defer nc.Close()
	var err error
	if op == "subscribe" {
		_, err = nc.SubscribeSync(subject)
	} else {
		m := nats.NewMsg(subject)
		m.Header.Set(nats.ExpectedLastSeqHdr, "999999") // so that nothing is stored
		err = nc.PublishMsg(m)
	}
	if err != nil {
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

// noHeaderErases: who may append may not roll up, expire or schedule.
func noHeaderErases(t *testing.T, url string, k streams.HostKey) {
	t.Helper()
	nc := dialBare(t, url, k)
	defer nc.Close()
	for name, value := range map[string]string{"Nats-Rollup": "all", "Nats-TTL": "1s", "Nats-Schedule": "@at 2100-01-01T00:00:00Z"} {
		m := nats.NewMsg(events.Sessions.Subject("p"))
		m.Header.Set(name, value)
		answer, err := nc.RequestMsg(m, 10*time.Second)
		if err != nil || !strings.Contains(string(answer.Data), `"error"`) {
			t.Errorf("%s: %v, answered %s", name, err, answer.Data)
		}
	}
}
