package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/actors/api"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
)

// A program asks for a player, follows the transfer to its end, and the player stands there.
func TestATransferIsAskedForAndFollowed(t *testing.T) {
	n := open(t)
	ada := n.join("Ada")
	there := other(ada.Look().Server)
	token := n.token(events.ScopeTransfer, events.ScopeRead)
	r := n.call("POST", "/v1/transfers", token, `{"player":"ada","region":"`+sim.RegionOf(there)+`"}`)
	if r.status != http.StatusAccepted {
		t.Fatalf("%d %s", r.status, r.body)
	}
	var asked api.Transfer
	r.into(t, &asked)
	if asked.Player != ada.ID.String() || asked.Trigger != "api" || asked.Place == 0 {
		t.Errorf("%s", r.body)
	}

	var phases []string
	for e := range n.follow("/v1/transfers/"+asked.Transfer+"/events", token) {
		var now api.Transfer
		if err := json.Unmarshal([]byte(e.data), &now); err != nil || e.event != "transfer" || e.id == "" {
			t.Fatalf("%+v %v", e, err)
		}
		phases = append(phases, now.Phase)
	}
	if len(phases) == 0 || phases[len(phases)-1] != "COMPLETED" {
		t.Errorf("followed through %v", phases)
	}
	if !ada.Until(t.Context(), func(v sim.View) bool { return v.Server == there }) {
		t.Errorf("she is on %s", ada.Look().Server)
	}

	var done api.Transfer
	n.call("GET", "/v1/transfers/"+asked.Transfer, token, "").into(t, &done)
	if done.Phase != "COMPLETED" || done.Code != "OK" || done.Server != string(there) || done.At == nil {
		t.Errorf("%+v", done)
	}
	var who api.Player
	n.call("GET", "/v1/players/Ada", token, "").into(t, &who)
	if who.Player != ada.ID.String() || len(who.Done) != 1 || who.Done[0].Transfer != asked.Transfer || who.Active != nil {
		t.Errorf("%+v", who)
	}
}

func other(id events.HostID) events.HostID {
	if id == "backend-1" {
		return "backend-2"
	}
	return "backend-1"
}

// The same key asks once, whatever became of the first answer; another player's key is refused.
func TestAKeyAsksOnce(t *testing.T) {
	n := open(t)
	ada, bob := n.join("Ada"), n.join("Bob")
	token := n.token(events.ScopeTransfer)
	ask := func(player, key string) reply {
		return n.call("POST", "/v1/transfers", token, `{"player":"`+player+`"}`, "Idempotency-Key", key)
	}
	for _, key := range []string{"order 66", "a.word", strings.Repeat("x", 65)} {
		r := ask(ada.ID.String(), key)
		if bad := strings.Contains(key, " ") || len(key) > 64; bad != (r.status == http.StatusUnprocessableEntity) {
			t.Errorf("key %q: %d %s", key, r.status, r.body)
		}
	}
	var first, again api.Transfer
	ask(ada.ID.String(), "a.word").into(t, &first)
	for e := range n.follow("/v1/transfers/"+first.Transfer+"/events", n.token(events.ScopeRead)) {
		_ = e // until it has ended
	}
	ask(ada.ID.String(), "a.word").into(t, &again)
	if again.Transfer != first.Transfer || again.Phase != "COMPLETED" {
		t.Errorf("first %+v, then %+v", first, again)
	}
	if r := ask(bob.ID.String(), "a.word"); r.status != http.StatusUnprocessableEntity || r.code(t) != events.KeyReused {
		t.Errorf("another player's: %d %s", r.status, r.body)
	}
	r := n.call("POST", "/v1/transfers", n.makeToken(time.Now().Add(time.Hour), events.ScopeTransfer), `{"player":"Bob"}`, "Idempotency-Key", "a.word")
	if r.status != http.StatusAccepted {
		t.Errorf("another token's key is another: %d %s", r.status, r.body)
	}
	id := "0190c5b2-7d5e-7c3a-9d53-0b5a0d1f2e3c"
	var own api.Transfer
	if ask("Ada", id).into(t, &own); own.Transfer != id {
		t.Errorf("the key is a UUID, the transfer %s", own.Transfer)
	}
}

// Nobody can serve the wish: the player waits in line, is seen there, and leaves it.
func TestAWishIsTakenBack(t *testing.T) {
	n := open(t)
	ada := n.join("Ada")
	n.decree(events.PauseKey(events.PauseLine, ""), &events.PauseSet{What: events.PauseLine, On: true, Who: "op"})
	token := n.token(events.ScopeTransfer, events.ScopeRead)
	var asked, waits api.Transfer
	n.call("POST", "/v1/transfers", token, `{"player":"Ada"}`).into(t, &asked)
	n.call("GET", "/v1/transfers/"+asked.Transfer+"?waitMs=10000&after="+uintText(asked.Place), token, "").into(t, &waits)
	if waits.Phase != "WAITING" || waits.Position != 1 || waits.Seq <= asked.Place {
		t.Errorf("asked %+v, then %+v", asked, waits)
	}
	var line api.Line
	n.call("GET", "/v1/line", token, "").into(t, &line)
	if !line.Paused || line.Length != 1 || len(line.Waiting) != 1 || line.Waiting[0].Name != "Ada" || line.Waiting[0].Position != 1 {
		t.Errorf("the line %+v", line)
	}
	var gone api.Transfer
	n.call("POST", "/v1/transfers/"+asked.Transfer+"/cancel", token, "").into(t, &gone)
	if gone.Phase != "CANCELLED" || gone.Code != string(events.Cancel) {
		t.Errorf("%+v", gone)
	}
	if r := n.call("POST", "/v1/transfers/"+asked.Transfer+"/cancel", token, ""); r.status != http.StatusNotFound || r.code(t) != events.NotKnown {
		t.Errorf("cancelled twice: %d %s", r.status, r.body)
	}
	if ada.Look().Server == "" {
		t.Error("she is gone")
	}
}

func uintText(n uint64) string {
	raw, _ := json.Marshal(n)
	return string(raw)
}

// Each refusal has its status and its stable code.
func TestRefusals(t *testing.T) {
	n := open(t)
	n.join("Ada")
	all := n.token(events.Scopes...)
	n.decree(events.KillKey, &events.KillSet{On: true, Who: "op", Why: "a test"})
	for name, c := range map[string]struct {
		method, path, token, body string
		status                    int
		code                      events.Code
	}{
		"no token":            {"GET", "/v1/fleet", "", "", 401, events.AuthFailed},
		"not a token":         {"GET", "/v1/fleet", "hunter2", "", 401, events.AuthFailed},
		"somebody's token":    {"GET", "/v1/fleet", strings.Replace(all, "landfall_", "landfall_0", 1), "", 401, events.AuthFailed},
		"one letter off":      {"GET", "/v1/fleet", flip(all), "", 401, events.AuthFailed},
		"expired":             {"GET", "/v1/fleet", n.makeToken(time.Now().Add(-time.Second), events.Scopes...), "", 401, events.AuthFailed},
		"another scope":       {"POST", "/v1/control/kill", n.token(events.ScopeRead), `{"on":true}`, 403, events.ScopeMissing},
		"read is not ask":     {"POST", "/v1/transfers", n.token(events.ScopeRead), `{"player":"Ada"}`, 403, events.ScopeMissing},
		"the log of control":  {"GET", "/v1/events?bucket=control", n.token(events.ScopeRead), "", 403, events.ScopeMissing},
		"killed":              {"POST", "/v1/transfers", all, `{"player":"Ada"}`, 503, events.KillSwitch},
		"nobody of that name": {"POST", "/v1/transfers", all, `{"player":"Eve"}`, 404, events.NotKnown},
		"not on the network":  {"POST", "/v1/transfers", all, `{"player":"0190c5b2-7d5e-7c3a-9d53-0b5a0d1f2e3c"}`, 409, events.NotHere},
		"a region's form":     {"POST", "/v1/transfers", all, `{"player":"Ada","region":"a b"}`, 422, events.BadRequest},
		"an unknown field":    {"POST", "/v1/transfers", all, `{"player":"Ada","reign":"x"}`, 422, events.BadRequest},
		"no player":           {"POST", "/v1/transfers", all, `{}`, 422, events.BadRequest},
		"not JSON":            {"POST", "/v1/transfers", all, `{`, 400, events.BadRequest},
		"too long":            {"POST", "/v1/transfers", all, `{"player":"` + strings.Repeat("x", 70_000) + `"}`, 413, events.BadRequest},
		"no such transfer":    {"GET", "/v1/transfers/0190c5b2-7d5e-7c3a-9d53-0b5a0d1f2e3c", all, "", 404, events.NotKnown},
		"not a transfer":      {"GET", "/v1/transfers/7", all, "", 422, events.BadRequest},
		"events are off":      {"POST", "/v1/triggers", all, `{"player":"Ada","event":"arena-end"}`, 403, events.Disabled},
		"nowhere":             {"GET", "/v2/everything", all, "", 404, events.NotKnown},
		"another method":      {"DELETE", "/v1/fleet", all, "", 404, events.NotKnown},
		"a host not known":    {"POST", "/v1/control/drain", all, `{"host":"backend-9","on":true}`, 404, events.NotKnown},
		"the line has a name": {"POST", "/v1/control/pause", all, `{"what":"line","name":"x","on":true}`, 422, events.BadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			r := call(t, n.server.URL, c.method, c.path, c.token, c.body)
			if r.status != c.status || r.code(t) != c.code {
				t.Errorf("%d %s, want %d %s", r.status, r.body, c.status, c.code)
			}
			if (r.status == 401) != (r.header.Get("WWW-Authenticate") == "Bearer") || (r.status == 503) != (r.header.Get("Retry-After") != "") {
				t.Errorf("headers %v", r.header)
			}
			if secret := c.token[max(len(c.token)-20, 0):]; c.token != "" && strings.Contains(string(r.body), secret) {
				t.Errorf("the answer shows the token: %s", r.body)
			}
		})
	}
}

func flip(s string) string {
	last := byte('A')
	if s[len(s)-3] == last {
		last = 'B'
	}
	return s[:len(s)-3] + string(last) + s[len(s)-2:]
}
