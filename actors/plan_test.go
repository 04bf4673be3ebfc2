package actors

import (
	"fmt"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// say is an act in one line.
func say(a act) string {
	switch a := a.(type) {
	case idle:
		return "idle"
	case dispatch:
		return "dispatch"
	case moveAct:
		return "move"
	case enquire:
		if a.reopen != nil {
			return fmt.Sprintf("enquire, reopen: %s", a.reopen.Evidence)
		}
		return "enquire"
	case do:
		switch c := a.command.(type) {
		case Fail:
			return "fail " + string(c.Code)
		case Cancel:
			return "cancel " + string(c.Code)
		case Expire:
			return "expire " + string(c.Reason)
		case Release:
			return "release " + string(c.Reason)
		default:
			return fmt.Sprintf("do %T", c)
		}
	}
	return fmt.Sprintf("%T", a)
}

// planned is what the dispatcher that plans sees. Everybody beats, unless a test says otherwise.
type planned struct {
	s Standing
	w watch
}

// planFor is the moment at which e1 looks at a journey; the player stands on a, held by e1.
func planFor(t *testing.T, self events.HostID, at time.Duration, facts ...events.TransferFact) *planned {
	t.Helper()
	tr := journey(t, facts...)
	p := &planned{s: standingOf(&tr)}
	p.w = watch{now: t0.Add(at), timing: Timing{}.WithDefaults(), self: edge(self)}
	f := &projections.Fleet{Seq: 90, Live: true, Since: t0.Add(-time.Hour)}
	for _, id := range []events.HostID{"a", "b"} {
		f.Backends = append(f.Backends, &projections.Backend{
			BackendBeat: events.BackendBeat{Server: id, Incarnation: lifeOf(id), State: events.Ready}, Seq: 60, Seen: p.w.now, Since: f.Since, Live: true,
		})
	}
	for _, id := range []events.HostID{"e1", "e2", "e3"} {
		f.Proxies = append(f.Proxies, &projections.Proxy{
			ProxyBeat: events.ProxyBeat{Proxy: id, Incarnation: lifeOf(id), State: events.Ready}, Seq: 61, Seen: p.w.now, Since: f.Since, Live: true,
		})
	}
	f.Heard = p.w.now
	p.w.fleet = f
	return p
}

func (p *planned) with(change func(p *planned)) *planned {
	change(p)
	return p
}

// The things that a table row may change.
func heldBy(id events.HostID) func(*planned) {
	return func(p *planned) { p.s.Session = sessionOn("a", id) }
}

func stands(server events.HostID) func(*planned) {
	return func(p *planned) { p.s.Session.Server = server }
}

func closedAt(at time.Duration) func(*planned) {
	return func(p *planned) { p.s.Session.Open, p.s.Session.Seen = false, t0.Add(at) }
}

// cameBack says how long the player was away, and when the return was seen.
func cameBack(away, seen time.Duration) func(*planned) {
	return func(p *planned) { p.s.Session.Away, p.s.Session.OpenSeen = away, t0.Add(seen) }
}

func neverSeen(p *planned) { p.s.HasSession, p.s.Session = false, projections.Session{} }

func killed(p *planned) { p.s.Controls.Killed = true }

func blind(p *planned) { p.w.fleet.Live = false }

// sightedSince makes the dispatcher see the fleet from a moment on.
func sightedSince(at time.Duration) func(*planned) {
	return func(p *planned) { p.w.fleet.Since = t0.Add(at) }
}

// silentSince makes a dispatcher's last beat an old one.
func silentSince(id events.HostID, at time.Duration) func(*planned) {
	return func(p *planned) { p.w.fleet.Proxy(id).Seen = t0.Add(at) }
}

func shuttingDown(id events.HostID) func(*planned) {
	return func(p *planned) { p.w.fleet.Proxy(id).State = events.ShuttingDown }
}

// rebornProxy makes another life of a dispatcher beat since a moment.
func rebornProxy(id events.HostID, at time.Duration) func(*planned) {
	return func(p *planned) {
		x := p.w.fleet.Proxy(id)
		x.Incarnation, x.Since = lifeOf(id+" again"), t0.Add(at)
	}
}

// found makes the last beat of a dispatcher one that lay in the store, not one that came.
func found(id events.HostID) func(*planned) {
	return func(p *planned) { p.w.fleet.Proxy(id).Live = false }
}

func unknownProxy(id events.HostID) func(*planned) {
	return func(p *planned) {
		var rest []*projections.Proxy
		for _, x := range p.w.fleet.Proxies {
			if x.Proxy != id {
				rest = append(rest, x)
			}
		}
		p.w.fleet.Proxies = rest
	}
}

// rebornB makes another life of the destination beat since a moment, at a sequence.
func rebornB(at time.Duration, seq uint64) func(*planned) {
	return func(p *planned) {
		b := p.w.fleet.Backend("b")
		b.Incarnation, b.Since, b.Seq = lifeOf("b again"), t0.Add(at), seq
	}
}

func joinedAtB(open bool) func(*planned) {
	return func(p *planned) {
		p.s.Session = sessionOn("b", "e1")
		p.s.Session.Open, p.s.Session.Join = open, num[events.JoinID](9)
	}
}

// alone lets nobody else stand in the order of turns.
func alone(p *planned) {
	for _, x := range p.w.fleet.Proxies {
		if x.Proxy != p.w.self.ID {
			x.Seen = t0.Add(-time.Hour)
		}
	}
}

func maxAge(d time.Duration) func(*planned) { return func(p *planned) { p.w.timing.MaxAge = d } }

// TestPlan walks through the table "who must end each state". Facts come a second apart
// from t0 on; times are from t0. "b" is the destination, "a" the origin, e1 holds the player.
func TestPlan(t *testing.T) {
	wait, claim1 := &events.Waitlisted{}, claimed(1, "e1")
	sent := &events.Transferred{Attempt: 1, How: events.HowTransfer, Result: events.MoveSent}
	unknown := &events.Transferred{Attempt: 1, How: events.HowTransfer, Result: events.MoveUnknown}
	unreachable := &events.Released{Attempt: 1, Reason: events.Unreachable}
	type facts = []events.TransferFact
	type changes = []func(*planned)
	const s, ms = time.Second, time.Millisecond
	rows := []struct {
		name  string
		facts facts
		self  events.HostID
		at    time.Duration
		with  changes
		want  string
	}{
		{"nobody holds the player: too early", nil, "e1", 4999 * ms, changes{neverSeen, alone}, "idle"},
		{"nobody holds the player: over", nil, "e1", 5 * s, changes{neverSeen, alone}, "fail PLAYER_OFFLINE"},
		{"nobody holds the player: waitlisted", facts{wait}, "e2", 6 * s, changes{neverSeen, alone}, "fail PLAYER_OFFLINE"},
		{"nobody holds the player: a blind one waits", nil, "e1", time.Hour, changes{neverSeen, alone, blind}, "idle"},
		{"nobody holds the player: one that sees since 4 s waits", nil, "e1", 60 * s, changes{neverSeen, alone, sightedSince(56 * s)}, "idle"},
		{"nobody holds the player: one that sees since more than 4 s acts", nil, "e1", 60 * s, changes{neverSeen, alone, sightedSince(55 * s)}, "fail PLAYER_OFFLINE"},

		{"requested: the holder dispatches", nil, "e1", 0, nil, "dispatch"},
		{"requested: blind to the fleet the holder dispatches", nil, "e1", 0, changes{blind}, "dispatch"},
		{"requested: others leave it, however old", nil, "e2", 99 * time.Hour, changes{alone, silentSince("e1", 99*time.Hour)}, "idle"},
		{"waiting: the holder dispatches", facts{wait}, "e1", 60 * s, nil, "dispatch"},
		{"waiting: no age limit", facts{wait}, "e1", 1000 * time.Hour, nil, "dispatch"},
		{"waiting: under the age limit", facts{wait}, "e1", 60 * s, changes{maxAge(60 * s)}, "dispatch"},
		{"waiting: over the age limit", facts{wait}, "e1", 60*s + 1, changes{maxAge(60 * s)}, "cancel AGED_OUT"},
		{"requested: over the age limit, others leave it", nil, "e2", 61 * s, changes{maxAge(60 * s), alone, silentSince("e1", 61*s)}, "idle"},

		{"back within grace: the place stands", nil, "e1", 80 * s, changes{cameBack(60*s, 70*s)}, "dispatch"},
		{"back over grace: the place falls, although nobody swept", nil, "e1", 80 * s, changes{cameBack(60*s+1, 70*s)}, "cancel GRACE_OVER"},
		{"back over grace, waiting: the same", facts{wait}, "e1", 80 * s, changes{cameBack(time.Hour, 70*s)}, "cancel GRACE_OVER"},
		{"back over grace before the request: another one", nil, "e1", 80 * s, changes{cameBack(time.Hour, -10*s)}, "dispatch"},
		{"player gone: grace", nil, "e2", 69 * s, changes{closedAt(10 * s), alone}, "idle"},
		{"player gone: grace over", nil, "e2", 70 * s, changes{closedAt(10 * s), alone}, "cancel GRACE_OVER"},
		{"player gone: the last holder also waits for grace", nil, "e1", 69 * s, changes{closedAt(10 * s), alone}, "idle"},
		{"player gone: the last holder cancels", nil, "e1", 70 * s, changes{closedAt(10 * s), alone}, "cancel GRACE_OVER"},
		{"player gone: a blind one waits", nil, "e2", 99 * time.Hour, changes{closedAt(10 * s), alone, blind}, "idle"},
		{"holder silent: grace begins when absence is judged", nil, "e2", 72 * s, changes{alone, silentSince("e1", 10*s)}, "idle"},
		{"holder silent: over", nil, "e2", 73 * s, changes{alone, silentSince("e1", 10*s)}, "cancel GRACE_OVER"},
		{"holder reborn: grace from its new life", nil, "e2", 69 * s, changes{alone, rebornProxy("e1", 10*s)}, "idle"},
		{"holder reborn: over", nil, "e2", 70 * s, changes{alone, rebornProxy("e1", 10*s)}, "cancel GRACE_OVER"},
		{"holder is an earlier life of the only dispatcher: grace", nil, "e1", 69 * s, changes{heldBy("e1"), func(p *planned) {
			p.s.Session.HolderIncarnation = lifeOf("e1 before")
		}, alone, sightedSince(10 * s)}, "idle"},
		{"holder is an earlier life of the only dispatcher: over", nil, "e1", 70 * s, changes{heldBy("e1"), func(p *planned) {
			p.s.Session.HolderIncarnation = lifeOf("e1 before")
		}, alone, sightedSince(10 * s)}, "cancel GRACE_OVER"},
		{"holder never beat: silence counts from sight", nil, "e2", 73 * s, changes{unknownProxy("e1"), alone, sightedSince(10 * s)}, "cancel GRACE_OVER"},
		{"holder never beat: grace", nil, "e2", 72 * s, changes{unknownProxy("e1"), alone, sightedSince(10 * s)}, "idle"},

		{"pending: the holder moves", facts{reserved(1)}, "e1", 1 * s, nil, "move"},
		{"pending: just more than moveTimeout + 2 s left", facts{reserved(1)}, "e1", 24*s - 1, nil, "move"},
		{"pending: too little of the ttl left", facts{reserved(1)}, "e1", 24 * s, nil, "idle"},
		{"pending: over, the holder expires it", facts{reserved(1)}, "e1", 31 * s, nil, "expire TTL_PASSED"},
		{"pending: others do not move", facts{reserved(1)}, "e2", 1 * s, changes{alone}, "idle"},
		{"pending: others wait for the slack", facts{reserved(1)}, "e2", 36*s - 1, changes{alone}, "idle"},
		{"pending: others expire it whatever heartbeats say", facts{reserved(1)}, "e2", 36 * s, changes{alone}, "expire TTL_PASSED"},
		{"pending: a blind one waits", facts{reserved(1)}, "e2", 99 * time.Hour, changes{alone, blind}, "idle"},
		{"pending: the last holder expires it though the player left", facts{reserved(1)}, "e1", 31 * s, changes{closedAt(3 * s)}, "expire TTL_PASSED"},
		{"pending: no move for a player who left", facts{reserved(1)}, "e1", 3 * s, changes{closedAt(2 * s)}, "idle"},
		{"pending: the destination lives anew", facts{reserved(1)}, "e1", 3 * s, changes{rebornB(2*s, 70)}, "expire NEW_INCARNATION"},
		{"pending: the destination lives anew, others in turn", facts{reserved(1)}, "e2", 3 * s, changes{rebornB(2*s, 70), alone}, "expire NEW_INCARNATION"},
		{"pending: a beat that the snapshot knew is no new life", facts{reserved(1)}, "e1", 3 * s, changes{rebornB(2*s, 50)}, "move"},
		{"pending: killed, the holder releases", facts{reserved(1)}, "e1", 3 * s, changes{killed}, "release KILL_SWITCH"},
		{"pending: killed, others leave it", facts{reserved(1)}, "e2", 3 * s, changes{killed, alone}, "idle"},
		{"pending: reopened, the holder moves", facts{reserved(1), claim1, &events.Reopened{Attempt: 1, Claim: 102}}, "e1", 4 * s, nil, "move"},
		{"pending in a login that is over: nobody is moved twice", facts{reserved(1), claim1, sent, unreachable, reserved(2)}, "e1", 6 * s, nil, "idle"},
		{"pending in a login that is over: expires", facts{reserved(1), claim1, sent, unreachable, reserved(2)}, "e1", 35 * s, nil, "expire TTL_PASSED"},

		{"claimed: the claimer is at work", facts{reserved(1), claim1}, "e1", 20 * s, nil, "idle"},
		{"claimed: the ttl is over, the owner asks the origin", facts{reserved(1), claim1}, "e1", 31 * s, nil, "enquire"},
		{"claimed: others wait for the slack", facts{reserved(1), claim1}, "e2", 36*s - 1, changes{alone}, "idle"},
		{"claimed: others ask the origin", facts{reserved(1), claim1}, "e2", 36 * s, changes{alone}, "enquire"},
		{"claimed: a blind one waits", facts{reserved(1), claim1}, "e2", 99 * time.Hour, changes{alone, blind}, "idle"},
		{"claimed: killed finishes", facts{reserved(1), claim1}, "e1", 3 * s, changes{killed}, "idle"},
		{"claimed: a disconnect means nothing", facts{reserved(1), claim1}, "e1", 20 * s, changes{closedAt(3 * s)}, "idle"},

		{"claimer silent: reopened by the newest session", facts{reserved(1), claim1}, "e2", 8 * s, changes{heldBy("e2"), silentSince("e1", 4*s)}, "enquire, reopen: STALE"},
		{"claimer silent for staleAfter: not yet", facts{reserved(1), claim1}, "e2", 8 * s, changes{heldBy("e2"), silentSince("e1", 5*s)}, "idle"},
		{"claim of claimReanimate: not yet", facts{reserved(1), claim1}, "e2", 7 * s, changes{heldBy("e2"), silentSince("e1", -10*s)}, "idle"},
		{"claimer alive: no reopening", facts{reserved(1), claim1}, "e2", 20 * s, changes{heldBy("e2")}, "idle"},
		{"claimer silent, session not ours: no reopening", facts{reserved(1), claim1}, "e2", 20 * s, changes{silentSince("e1", 0)}, "idle"},
		{"claimer silent, session closed: no reopening", facts{reserved(1), claim1}, "e2", 20 * s, changes{heldBy("e2"), closedAt(9 * s), silentSince("e1", 0)}, "idle"},
		{"claimer silent, player elsewhere: no reopening", facts{reserved(1), claim1}, "e2", 20 * s, changes{heldBy("e2"), stands("c"), silentSince("e1", 0)}, "idle"},
		{"claimer silent, player at the destination: no reopening", facts{reserved(1), claim1}, "e2", 20 * s, changes{heldBy("e2"), stands("b"), silentSince("e1", 0)}, "idle"},
		{"claimer silent: a blind one waits", facts{reserved(1), claim1}, "e2", 20 * s, changes{heldBy("e2"), silentSince("e1", 0), blind}, "idle"},
		{"claimer silent: one that sees since 4 s waits", facts{reserved(1), claim1}, "e2", 20 * s, changes{heldBy("e2"), silentSince("e1", 0), sightedSince(16 * s)}, "idle"},
		{"claimer silent: what came before sight does not count", facts{reserved(1), claim1}, "e2", 20 * s, changes{heldBy("e2"), silentSince("e1", 0), sightedSince(15 * s)}, "enquire, reopen: STALE"},
		{"claimer lives anew", facts{reserved(1), claim1}, "e2", 8 * s, changes{heldBy("e2"), rebornProxy("e1", 6*s)}, "enquire, reopen: NEW_INCARNATION"},
		{"claimer lives anew, found in the store: no evidence", facts{reserved(1), claim1}, "e2", 8 * s, changes{heldBy("e2"), rebornProxy("e1", 6*s), found("e1")}, "idle"},
		{"claimer says goodbye", facts{reserved(1), claim1}, "e2", 8 * s, changes{heldBy("e2"), shuttingDown("e1")}, "enquire, reopen: NOT_READY"},
		{"a goodbye found in the store: no evidence", facts{reserved(1), claim1}, "e2", 8 * s, changes{heldBy("e2"), shuttingDown("e1"), found("e1")}, "idle"},
		{"claimer never beat", facts{reserved(1), claim1}, "e2", 12 * s, changes{heldBy("e2"), unknownProxy("e1"), sightedSince(5 * s)}, "enquire, reopen: STALE"},
		{"claimer is our own earlier life", facts{reserved(1), claimed(1, "e1 before")}, "e1", 8 * s, changes{func(p *planned) {
			p.s.Active.Claim.Dispatcher = "e1"
		}}, "enquire, reopen: NEW_INCARNATION"},
		{"our own claim is never reopened by us", facts{reserved(1), claim1}, "e1", 20 * s, changes{silentSince("e1", 0)}, "idle"},
		{"move sent: never reopened", facts{reserved(1), claim1, sent}, "e2", 20 * s, changes{heldBy("e2"), silentSince("e1", 0)}, "idle"},

		{"move sent: the owner at the ttl", facts{reserved(1), claim1, sent}, "e1", 31 * s, nil, "fail NOT_ARRIVED"},
		{"move sent: before", facts{reserved(1), claim1, sent}, "e1", 31*s - 1, nil, "idle"},
		{"move unknown: the owner at the ttl", facts{reserved(1), claim1, unknown}, "e1", 31 * s, nil, "fail NOT_ARRIVED"},
		{"move unknown: others wait for the slack", facts{reserved(1), claim1, unknown}, "e2", 36*s - 1, changes{alone}, "idle"},
		{"move unknown: others", facts{reserved(1), claim1, unknown}, "e2", 36 * s, changes{alone}, "fail NOT_ARRIVED"},
		{"move unknown: the owner after the player left", facts{reserved(1), claim1, unknown}, "e1", 31 * s, changes{closedAt(4 * s)}, "fail NOT_ARRIVED"},

		{"held login over: the holder of the session", facts{reserved(1), claim1, sent, unreachable}, "e1", 9 * s, nil, "fail NOT_ARRIVED"},
		{"held login over: not yet", facts{reserved(1), claim1, sent, unreachable}, "e1", 9*s - 1, nil, "idle"},
		{"held login over: others", facts{reserved(1), claim1, sent, unreachable}, "e2", 9 * s, changes{alone}, "fail NOT_ARRIVED"},

		{"consumed: placement takes time", facts{reserved(1), claim1, consumed(1)}, "e1", 33*s - 1, nil, "idle"},
		{"consumed: unconfirmed", facts{reserved(1), claim1, consumed(1)}, "e1", 33 * s, nil, "fail PLACEMENT_UNCONFIRMED"},
		{"consumed: others", facts{reserved(1), claim1, consumed(1)}, "e2", 33 * s, changes{alone}, "fail PLACEMENT_UNCONFIRMED"},
		{"consumed: a blind one waits", facts{reserved(1), claim1, consumed(1)}, "e2", 99 * time.Hour, changes{alone, blind}, "idle"},
		{"consumed: the destination lives anew", facts{reserved(1), claim1, consumed(1)}, "e1", 5 * s, changes{rebornB(4*s, 70)}, "fail PLACEMENT_UNCONFIRMED"},
		{"consumed: the player left", facts{reserved(1), claim1, consumed(1)}, "e1", 5 * s, changes{joinedAtB(false)}, "fail PLAYER_LEFT"},
		{"consumed: the player left, others in turn", facts{reserved(1), claim1, consumed(1)}, "e2", 5 * s, changes{joinedAtB(false), alone}, "fail PLAYER_LEFT"},
		{"consumed: the player is there", facts{reserved(1), claim1, consumed(1)}, "e1", 5 * s, changes{joinedAtB(true)}, "idle"},
		{"consumed: another join left", facts{reserved(1), claim1, consumed(1)}, "e1", 5 * s, changes{joinedAtB(false), func(p *planned) {
			p.s.Session.Join = num[events.JoinID](77)
		}}, "idle"},
		{"consumed: the origin's session closed", facts{reserved(1), claim1, consumed(1)}, "e1", 5 * s, changes{closedAt(4 * s)}, "idle"},

		{"ended: nothing", facts{&events.Failed{Code: events.NoCandidate}}, "e1", time.Hour, nil, "idle"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := planFor(t, row.self, row.at, row.facts...)
			for _, change := range row.with {
				p.with(change)
			}
			if got := say(plan(p.s, p.w)); got != row.want {
				t.Errorf("plan is %q, want %q", got, row.want)
			}
		})
	}
}

// TestPlanInTurn: others come one after the other, in an order that depends on the transfer,
// and whoever is silent is not waited for.
func TestPlanInTurn(t *testing.T) {
	base := 36 * time.Second // ttl and slack are over
	due := map[events.HostID]time.Duration{}
	for _, id := range []events.HostID{"e2", "e3", "e4"} {
		due[id] = -1
		for rank := range 4 {
			at := base + time.Duration(rank)*turnStep
			if p := planFor(t, id, at, reserved(1)); say(plan(p.s, p.w)) != "idle" {
				due[id] = at - base
				break
			}
		}
	}
	seen := map[time.Duration]events.HostID{}
	for id, at := range due {
		if at < 0 {
			t.Errorf("%s never acts", id)
		}
		if other, taken := seen[at]; taken && id != "e4" && other != "e4" {
			t.Errorf("%s and %s act at the same time (%s)", id, other, at)
		}
		seen[at] = id
	}
	for _, id := range []events.HostID{"e2", "e3"} {
		if p := planFor(t, id, base, reserved(1)).with(alone); say(plan(p.s, p.w)) != "expire TTL_PASSED" {
			t.Errorf("%s waits for hosts that are silent", id)
		}
	}
}

// TestPlanSpreads: how long a dispatcher must have watched differs from host to host.
func TestPlanSpreads(t *testing.T) {
	p := planFor(t, "e2", 60*time.Second, reserved(1)).with(alone).with(sightedSince(55500 * time.Millisecond))
	if got := say(plan(p.s, p.w)); got != "expire TTL_PASSED" {
		t.Fatalf("without jitter: %s", got)
	}
	p.w.jitter = 700 * time.Millisecond
	if got := say(plan(p.s, p.w)); got != "idle" {
		t.Errorf("with jitter: %s, want idle", got)
	}
}

// TestPlanReopenEvidence: what is written names the claim, the last beat and the silence.
func TestPlanReopenEvidence(t *testing.T) {
	p := planFor(t, "e2", 20*time.Second, reserved(1), claimed(1, "e1")).with(heldBy("e2")).with(silentSince("e1", 5*time.Second))
	a, ok := plan(p.s, p.w).(enquire)
	if !ok || a.reopen == nil {
		t.Fatalf("plan is %s", say(plan(p.s, p.w)))
	}
	want := Reopen{Token: events.Token{Transfer: first, Attempt: 1}, By: edge("e2"), Claim: 102, Evidence: events.Stale, LastBeat: 61, SilenceMs: 15_000}
	if *a.reopen != want {
		t.Errorf("reopen is %+v, want %+v", *a.reopen, want)
	}
}

// TestPlanNothing: without a transfer there is nothing to do.
func TestPlanNothing(t *testing.T) {
	p := planFor(t, "e1", 0)
	p.s.Active = nil
	if got := say(plan(p.s, p.w)); got != "idle" {
		t.Errorf("plan is %s, want idle", got)
	}
}

// TestTimingDefaults: a field that is given stays, a zero one takes the documented length.
func TestTimingDefaults(t *testing.T) {
	got := Timing{TTL: time.Minute}.WithDefaults()
	want := Timing{
		TTL: time.Minute, TTLSlack: 5 * time.Second, ClaimReanimate: 5 * time.Second, Sweep: time.Second, ArrivalWindow: 2 * time.Second,
		Stale: 3 * time.Second, AttemptTimeout: 1500 * time.Millisecond, MoveTimeout: 5 * time.Second, SentPause: 500 * time.Millisecond,
		Cooldown: 2 * time.Second, Grace: time.Minute, Unheld: 5 * time.Second, Placement: 30 * time.Second, LoginHold: 5 * time.Second, JoinHold: 15 * time.Second, MaxRetries: 3,
	}
	if got != want {
		t.Errorf("timing is %+v, want %+v", got, want)
	}
}
