package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	natsclient "github.com/nats-io/nats.go"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// hostile is somebody who has the login of one game server's host, and a client of NATS.
type hostile struct {
	*natsclient.Conn

	id events.HostID
}

func newHostile(t *testing.T, url string, id events.HostID) hostile {
	t.Helper()
	user, password := streams.Login(realSecret, streams.RoleBackend, id)
	nc, err := natsclient.Connect(url, natsclient.UserInfo(user, password), natsclient.CustomInboxPrefix(streams.InboxPrefix(streams.RoleBackend, id)),
		natsclient.ErrorHandler(func(*natsclient.Conn, *natsclient.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return hostile{nc, id}
}

// says publishes junk, and waits until the server has seen it.
func (h hostile) says(t *testing.T, times int, subjects ...string) {
	t.Helper()
	for _, subject := range subjects {
		for i := range times {
			m := natsclient.NewMsg(subject)
			m.Header.Set(events.HeaderSource, fmt.Sprintf("/edge/proxy-1/%032d", i)) // passes itself off as a dispatcher
			m.Data = []byte("\x81\xa2on\xc3")
			if err := h.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := h.Flush(); err != nil {
		t.Fatal(err)
	}
}

// everything is what the log says about all but heartbeats and refusals.
func everything(t *testing.T, st *reader) map[events.Bucket]uint64 {
	t.Helper()
	out := map[events.Bucket]uint64{}
	for _, b := range events.Buckets {
		info, err := st.Info(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		if b != events.Fleet && b != events.Audit {
			out[b] = info.Last
		}
	}
	return out
}

// TestHostileBackend: whoever has the login of a game server's host tries to write facts, to beat
// and ask as others, to answer what others were asked, to fill a key, to read players, to delete
// streams, and to drown all of it. Nothing of that changes what the log says, other hosts go on,
// and `tail --type security` names the culprit.
func TestHostileBackend(t *testing.T) {
	port := freePort(t)
	s := newSite(t, threeHosts(port))
	file := filepath.Join(s.dir, "network.yml")
	t.Setenv(envSecret, encoded(realSecret))
	one, two := s.up(t, "proxy-1"), s.up(t, "proxy-2")
	one.says(t, "msg=ready proxy=proxy-1")
	two.says(t, "msg=ready proxy=proxy-2")
	st, err := storeFlags{config: file}.openToDecide(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	before := everything(t, st.reader)

	h := newHostile(t, fmt.Sprintf("nats://127.0.0.1:%d", port), "survival")
	player := "069a79f4-44e9-4726-a5be-fca90e38aaf5"
	h.says(t, 65, "$KV.transfers."+player+".0190c2a0-0000-7000-8000-000000000001")
	denied := []string{
		"$KV.sessions." + player, "$KV.control.kill", "$KV.control.drain.proxy-1", "$KV.audit.survival.x", "$KV.checkpoints.1", "$KV.limits." + player + ".rtp", "$KV.leases.evacuate",
		"$KV.fleet.proxy.proxy-1", "$KV.fleet.backend.other",
		"landfall.ask.backend.other.request", "landfall.news.backend.other.joined", "landfall.backend.other.move", "landfall.trigger.arena-end",
		"_INBOX.dispatcher.proxy-1.x", "_INBOX.operator.cli.x",
		"$JS.API.STREAM.DELETE.KV_transfers", "$JS.API.STREAM.PURGE.KV_transfers", "$JS.API.STREAM.UPDATE.KV_control", "$JS.API.STREAM.MSG.DELETE.KV_transfers",
		"$JS.API.STREAM.MSG.GET.KV_sessions", "$JS.API.DIRECT.GET.KV_transfers", "$JS.API.CONSUMER.CREATE.KV_sessions.x.y", "$JS.API.STREAM.RESTORE.KV_x",
	}
	h.says(t, 1, denied...)
	deaf := []string{"$KV.>", "landfall.ask.>", "_INBOX.>", "landfall.backend.other.*", ">"}
	for _, subject := range deaf {
		if _, err := h.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
	}
	h.says(t, 65, "$KV.fleet.backend.survival") // its own key: it may, and nobody believes it
	h.says(t, 1000, "landfall.ask.backend.survival.request", "landfall.news.backend.survival.joined")
	answer, err := h.Request("landfall.ask.backend.survival.state", []byte("x"), patience)
	if err != nil || len(answer.Data) == 0 {
		t.Errorf("an ask that is not signed is answered by %v, %v", answer, err)
	}

	// The others go on: a decision is written, heartbeats come, and doctor finds them well.
	if o := typed(t, "pause", "line", "--config", file); o.status != statusOK {
		t.Errorf("%+v", o)
	}
	before[events.Control]++
	if after := everything(t, st.reader); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the log holds %v, it held %v", after, before)
	}
	for _, id := range []events.HostID{"proxy-1", "proxy-2"} {
		goesOn(t, st, id)
	}
	accused(t, file, 65+len(denied)+len(deaf))
}

// goesOn waits for another heartbeat of a dispatcher.
func goesOn(t *testing.T, st deciding, id events.HostID) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	key := events.ProxyKey(id)
	last, _, err := st.Last(ctx, events.Fleet, key)
	for look := time.NewTicker(50 * time.Millisecond); err == nil; <-look.C {
		var now events.Record
		if now, _, err = st.Last(ctx, events.Fleet, key); err == nil && now.Seq > last.Seq {
			return
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("it does not beat any more")
	}
	t.Errorf("%s: %v", id, err)
}

// accused waits until the log of refusals names the culprit: once for each thing that the store
// denied, and for asks and heartbeats that nobody signed; and looks that it is not drowned.
func accused(t *testing.T, file string, denied int) {
	t.Helper()
	o := until(t, func(o outcome) bool {
		found := map[string]int{}
		for _, row := range jsonLines(t, o.stdout) {
			if fact, ok := row["fact"].(map[string]any); ok {
				found[fmt.Sprint(fact["code"])]++
			}
		}
		return o.status == statusOK && found["WRONG_ACTOR"] == denied && found["AUTH_FAILED"] > 0 && found["STRAY_MARKER"] > 0
	}, "tail", "--type", "security", "--json", "--config", file)
	by := map[string]int{}
	for _, row := range jsonLines(t, o.stdout) {
		raw, err := json.Marshal(row["fact"])
		if err != nil {
			t.Fatal(err)
		}
		var fact events.Rejected
		if err := json.Unmarshal(raw, &fact); err != nil {
			t.Fatal(err)
		}
		by[string(fact.Code)]++
		if fact.Code == events.WrongActor && fact.Source != "login/backend.survival" {
			t.Errorf("the store's refusal blames %q", fact.Source)
		}
		if row["bucket"] != string(events.Audit) || row["verified"] != true {
			t.Errorf("%v", row)
		}
	}
	// Both proxies hear the news and see the heartbeats; each writes some hundred at most.
	for code, n := range by {
		if n > 2000 {
			t.Errorf("%s was written %d times", code, n)
		}
	}
	t.Logf("written: %v", by)
}
