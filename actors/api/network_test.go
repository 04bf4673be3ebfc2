package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/landfall/landfall/actors/api"
	"github.com/landfall/landfall/events"
)

func TestTheFleetIsShown(t *testing.T) {
	n := open(t)
	token := n.token(events.ScopeRead)
	n.decree(events.DrainKey("backend-2"), &events.DrainSet{Host: "backend-2", On: true, Who: "op"})
	var f api.Fleet
	n.call("GET", "/v1/fleet", token, "").into(t, &f)
	if len(f.Backends) != 2 || len(f.Proxies) != 2 || f.Backends[0].Server != "backend-1" || len(f.Backends[0].Regions) != 1 || f.Seq == 0 {
		t.Fatalf("%+v", f)
	}
	if c := f.Backends[1].Control; len(c) != 1 || c[0] != "drained" || f.Backends[0].Silent {
		t.Errorf("%+v", f.Backends)
	}
}

// What is decided over the API stands in the log with the token's name, is obeyed when the answer
// comes, and can be undone.
func TestDecisionsStandInTheLog(t *testing.T) {
	n := open(t)
	token := n.token(events.ScopeControl, events.ScopeRead)
	view := n.stage.Observer().View()
	for _, c := range []struct {
		path, body, key string
		holds           func() bool
	}{
		{"kill", `{"on":true,"who":"ada","why":"maintenance"}`, "kill", func() bool { return view.Controls().Killed && view.Controls().Kill.Who == "tester: ada" }},
		{"kill", `{"on":false}`, "kill", func() bool { return !view.Controls().Killed }},
		{"drain", `{"host":"backend-1","on":true}`, "drain.backend-1", func() bool { return view.Controls().Drained["backend-1"].Who == "tester" }},
		{"drain", `{"host":"backend-1","on":false}`, "drain.backend-1", func() bool { return len(view.Controls().Drained) == 0 }},
		{"drain", `{"host":"proxy-2","on":true}`, "drain.proxy-2", func() bool { return view.Controls().IsDrained("proxy-2") }},
		{"drain", `{"host":"later","on":true,"force":true}`, "drain.later", func() bool { return view.Controls().IsDrained("later") }},
		{"pause", `{"what":"line","on":true}`, "pause.line", func() bool { return view.Controls().LinePaused() }},
		{"pause", `{"what":"server","name":"backend-2","on":true}`, "pause.server.backend-2", func() bool { return view.Controls().IsPaused("backend-2", "x") }},
		{"pause", `{"what":"region","name":"region-of-backend-1","on":true}`, "pause.region.region-of-backend-1", func() bool {
			return view.Controls().IsPaused("x", "region-of-backend-1")
		}},
		{"evacuate", `{"host":"backend-2","on":true}`, "evacuate.backend-2", func() bool { return view.Controls().Evacuated["backend-2"].PerSecond == 2 }},
	} {
		r := n.call("POST", "/v1/control/"+c.path, token, c.body)
		var d api.Decreed
		r.into(t, &d)
		if r.status != http.StatusOK || d.Key != c.key || d.Seq == 0 || !c.holds() {
			t.Errorf("%s %s: %d %s; %+v", c.path, c.body, r.status, r.body, view.Controls())
		}
	}
	var now api.Control
	n.call("GET", "/v1/control", token, "").into(t, &now)
	if now.Killed != nil || len(now.Drained) != 2 || len(now.Paused) != 3 || len(now.Evacuated) != 1 {
		t.Errorf("%+v", now)
	}
}

// The event stream goes on behind the last id, without a gap and without saying anything twice.
func TestEventsGoOnWhereTheyStopped(t *testing.T) {
	n := open(t)
	ada := n.join("Ada")
	token := n.token(events.ScopeTransfer, events.ScopeRead)
	var asked api.Transfer
	n.call("POST", "/v1/transfers", token, `{"player":"Ada"}`).into(t, &asked)
	read := func(path string, header ...string) (types []string, last string) {
		for e := range n.follow(path, token, header...) {
			var f api.Fact
			if err := json.Unmarshal([]byte(e.data), &f); err != nil || e.event != "fact" || e.id != uintText(f.Seq) {
				t.Fatalf("%+v %v", e, err)
			}
			types, last = append(types, f.Type), e.id
			if len(types) == 2 || f.Type == "landfall.transfer.completed.v1" {
				return types, last
			}
		}
		return types, last
	}
	var all []string
	after := "0"
	for len(all) == 0 || all[len(all)-1] != "landfall.transfer.completed.v1" {
		types, last := read("/v1/events?after=0", "Last-Event-ID", after)
		if len(types) == 0 {
			t.Fatal("the stream ended")
		}
		all, after = append(all, types...), last
	}
	var want []string
	for _, r := range n.mem.Records(events.Transfers) {
		want = append(want, r.Header[events.HeaderType])
	}
	if len(all) != len(want) {
		t.Fatalf("read %v, the log has %v", all, want)
	}
	for i := range all {
		if all[i] != want[i] {
			t.Errorf("read %v, the log has %v", all, want)
		}
	}
	if types, _ := read("/v1/events?after=0&type=completed&player=" + ada.ID.String()); len(types) != 1 {
		t.Errorf("completed: %v", types)
	}
}

// Without after the stream begins with the next fact; a revoked token ends it.
func TestARevokedTokenEndsItsStreams(t *testing.T) {
	n := open(t)
	n.join("Ada")
	ask := n.token(events.ScopeTransfer)
	n.call("POST", "/v1/transfers", ask, `{"player":"Ada"}`)
	text := n.makeToken(time.Now().Add(time.Hour), events.ScopeRead)
	b, err := events.ParseBearer(text)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for range n.follow("/v1/events?after=0", text) {
		if seen++; seen == 1 {
			n.decree(events.APITokenKey(b.ID), &events.TokenSet{ID: b.ID, Revoked: true, Who: "op"})
		}
	}
	if seen == 0 {
		t.Error("nothing was seen")
	}
	if r := n.call("GET", "/v1/fleet", text, ""); r.status != http.StatusUnauthorized {
		t.Errorf("then %d %s", r.status, r.body)
	}
}

// Before there is a dispatcher, and while the store is away, everything is TRANSPORT_DOWN; it comes
// back by itself.
func TestAStoreThatIsAway(t *testing.T) {
	s := newService(t)
	early := httptest.NewServer(s)
	defer early.Close()
	if r := call(t, early.URL, "GET", "/v1/fleet", "x", ""); r.status != http.StatusServiceUnavailable || r.code(t) != events.TransportDown {
		t.Errorf("before: %d %s", r.status, r.body)
	}
	if r := call(t, early.URL, "GET", "/readyz", "", ""); r.status != http.StatusServiceUnavailable {
		t.Errorf("ready before: %d", r.status)
	}
	if r := call(t, early.URL, "GET", "/healthz", "", ""); r.status != http.StatusOK {
		t.Errorf("healthy before: %d", r.status)
	}
	n := open(t)
	n.join("Ada")
	token := n.token(events.ScopeTransfer, events.ScopeRead)
	n.mem.Outage()
	for _, c := range [][3]string{{"POST", "/v1/transfers", `{"player":"Ada"}`}, {"GET", "/v1/fleet", ""}, {"GET", "/v1/events", ""}, {"GET", "/readyz", ""}} {
		if r := n.call(c[0], c[1], token, c[2]); r.status != http.StatusServiceUnavailable || r.code(t) != events.TransportDown || r.header.Get("Retry-After") == "" {
			t.Errorf("%v: %d %s", c, r.status, r.body)
		}
	}
	n.mem.Restore()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !n.stage.Observer().Ready() {
		<-look.C
	}
	if r := n.call("POST", "/v1/transfers", token, `{"player":"Ada"}`); r.status != http.StatusAccepted {
		t.Errorf("after: %d %s", r.status, r.body)
	}
}
