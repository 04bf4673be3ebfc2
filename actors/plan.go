package actors

import (
	"hash/fnv"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Timing holds the lengths of all deadlines. The zero value of a field takes its default. A
// decision, and a dispatch with all its attempts, goes by one Timing from beginning to end.
type Timing struct {
	TTL            time.Duration // of a token, from `reserved`
	TTLSlack       time.Duration // what others wait beyond it
	ClaimReanimate time.Duration // age of a claim before it may be taken back
	Sweep          time.Duration // how often deadlines are looked at
	ArrivalWindow  time.Duration // how long an arrival ahead of its claim waits
	Stale          time.Duration // silence after which a host counts as gone
	AttemptTimeout time.Duration // for a `reserve`
	MoveTimeout    time.Duration // for a `move`; after it the outcome is unknown
	SentPause      time.Duration // after SENT, before `transferred` is written if no arrival is there
	Cooldown       time.Duration // of a destination after a fault of its own
	Grace          time.Duration // how long an absent player keeps the transfer
	Unheld         time.Duration // how long a transfer whose player nobody ever held is kept
	Placement      time.Duration // from `consumed` to `completed`
	MaxAge         time.Duration // in line; 0: for ever
	LoginHold      time.Duration // how long a login with an unknown token is held
	JoinHold       time.Duration // how long a login is held for a place, or a seat
	MaxRetries     int           // attempts per dispatch
}

// WithDefaults fills the fields that are zero.
func (t Timing) WithDefaults() Timing {
	d := func(v *time.Duration, def time.Duration) {
		if *v == 0 {
			*v = def
		}
	}
	d(&t.TTL, 30*time.Second)
	d(&t.TTLSlack, 5*time.Second)
	d(&t.ClaimReanimate, 5*time.Second)
	d(&t.Sweep, time.Second)
	d(&t.ArrivalWindow, 2*time.Second)
	d(&t.Stale, 3*time.Second)
	d(&t.AttemptTimeout, 1500*time.Millisecond)
	d(&t.MoveTimeout, 5*time.Second)
	d(&t.SentPause, 500*time.Millisecond)
	d(&t.Cooldown, 2*time.Second)
	d(&t.Grace, time.Minute)
	d(&t.Unheld, 5*time.Second)
	d(&t.Placement, 30*time.Second)
	d(&t.LoginHold, 5*time.Second)
	d(&t.JoinHold, 15*time.Second)
	if t.MaxRetries == 0 {
		t.MaxRetries = 3
	}
	return t
}

// SetTiming replaces the lengths of the deadlines: those of decisions and dispatches that begin
// from now on. It does not block.
func (d *Dispatcher) SetTiming(t Timing) {
	t = t.WithDefaults()
	d.timing.Store(&t)
}

// turnStep is how long each rank waits for the one before it.
const turnStep = 500 * time.Millisecond

// watch is what a plan may look at beside the standing of its player.
type watch struct {
	fleet  *projections.Fleet
	now    time.Time
	timing Timing
	self   events.Source
	jitter time.Duration // of this dispatcher, 0 to 1 s: hosts do not all judge at once
}

// act is what a dispatcher should do now about one transfer.
//
//sumtype:decl
type act interface{ act() }

type (
	idle     struct{}
	dispatch struct{}                  // choose a destination and reserve there
	moveAct  struct{}                  // claim the token and move the player
	do       struct{ command Command } // write this
	// enquire asks the origin whether it sent the player, before a claim that is not ours
	// is taken back (reopen) or ended (its time is over).
	enquire struct{ reopen *Reopen }
)

func (idle) act()     {}
func (dispatch) act() {}
func (moveAct) act()  {}
func (do) act()       {}
func (enquire) act()  {}

// plan says what this dispatcher owes a player's transfer now. It is pure. Each state has
// an owner and a deadline; others step in by turns, so that one of them appends.
func plan(s Standing, w watch) act {
	if s.Active == nil {
		return idle{}
	}
	t := *s.Active
	switch t.Phase {
	case projections.Requested, projections.Waiting:
		return planOpen(s, t, w)
	case projections.Pending:
		return planPending(s, t, w)
	case projections.Claimed:
		if t.Move == "" {
			return planClaimed(s, t, w)
		}
		return planMoved(s, t, w)
	case projections.Consumed:
		return planConsumed(s, t, w)
	case projections.Completed, projections.Failed, projections.Cancelled, projections.Superseded:
		return idle{}
	}
	return idle{}
}

func planOpen(s Standing, t projections.Transfer, w watch) act {
	holder := holds(s, w.self)
	if allocated(t.Request) { // whoever took the seat goes on with it at once, or has died
		return w.inTurn(t, false, w.now.Sub(t.Seen.Last)-w.timing.Unheld, Fail{Transfer: t.ID, Code: events.NoAnswer, In: openPhases})
	}
	if t.MovedOnce {
		// The login that was held for the next attempt is gone.
		return w.inTurn(t, holder, w.now.Sub(t.Seen.Last)-w.timing.Unheld,
			Fail{Transfer: t.ID, Code: events.NotArrived, Detail: "the held login ended", In: openPhases})
	}
	if ofLogin(s, t) {
		return planLogin(t, w)
	}
	if holder {
		if w.overGrace(s, t) {
			return do{Cancel{Transfer: t.ID, Code: events.GraceOver}}
		}
		if w.timing.MaxAge > 0 && w.now.Sub(t.Seen.Requested) > w.timing.MaxAge {
			return do{Cancel{Transfer: t.ID, Code: events.AgedOut}}
		}
		if w.fleet.Live && !w.hears() {
			return idle{} // what is known of the destinations is too old to choose by
		}
		return dispatch{}
	}
	if !s.HasSession {
		return w.inTurn(t, false, w.now.Sub(t.Seen.Requested)-w.timing.Unheld,
			Fail{Transfer: t.ID, Code: events.PlayerOffline, In: openPhases})
	}
	since, absent := w.absent(s)
	if !absent {
		return idle{}
	}
	return w.inTurn(t, false, w.now.Sub(since)-w.timing.Grace, Cancel{Transfer: t.ID, Code: events.GraceOver})
}

// planLogin is what becomes of a transfer whose login looks for a place itself, once that login must
// have ended: who is in line keeps the place for the time of grace.
func planLogin(t projections.Transfer, w watch) act {
	over := w.now.Sub(t.Seen.Requested) - w.timing.JoinHold - w.timing.Unheld
	if t.Waitlisted {
		return w.inTurn(t, false, over-w.timing.Grace, Cancel{Transfer: t.ID, Code: events.GraceOver})
	}
	return w.inTurn(t, false, over, Fail{Transfer: t.ID, Code: events.PlayerOffline, In: openPhases})
}

// overGrace tells that a player came back too late for the place, although nobody has swept
// it meanwhile. How long the player was away is what the stored times of the close and the
// open say; a request made since is another one.
func (w watch) overGrace(s Standing, t projections.Transfer) bool {
	back := s.Session.OpenSeen
	if t.Request.Trigger == events.TriggerJoin {
		back = s.Session.Before // the first session since is the one it was asked for
	}
	return t.Seen.Requested.Before(back) && s.Session.Away > w.timing.Grace
}

var openPhases = []projections.Phase{projections.Requested, projections.Waiting}

func planPending(s Standing, t projections.Transfer, w watch) act {
	if allocated(t.Request) {
		return planSeat(t, w)
	}
	age := w.now.Sub(t.Seen.Reserved)
	holder := holds(s, w.self) && !ofLogin(s, t)
	if since, yes := w.reborn(t); yes {
		return w.inTurn(t, holder, w.now.Sub(since), Expire{Token: t.Token, Reason: events.NewIncarnation})
	}
	if holder && s.Controls.Killed {
		return do{Release{Token: t.Token, Reason: events.KillSwitch}}
	}
	if holder && !t.MovedOnce && ttl(t)-age > w.timing.MoveTimeout+2*time.Second {
		return moveAct{}
	}
	if t.Reopened && !w.reported() {
		return idle{} // somebody may have come for it: it was claimed
	}
	return w.atDeadline(s, t, age, Expire{Token: t.Token, Reason: events.TTLPassed})
}

func planClaimed(s Standing, t projections.Transfer, w watch) act {
	if allocated(t.Request) {
		return planSeat(t, w)
	}
	if r := w.reopenable(s, t); r != nil {
		return enquire{reopen: r}
	}
	if t.Claim.From == "" {
		return planMoved(s, t, w) // a login that came from nowhere was let in: nobody else knows what became of it
	}
	_, due := w.atDeadline(s, t, w.now.Sub(t.Seen.Reserved), Expire{}).(do)
	if due && w.reported() {
		return enquire{}
	}
	return idle{}
}

func planMoved(s Standing, t projections.Transfer, w watch) act {
	if !w.reported() {
		return idle{}
	}
	return w.atDeadline(s, t, w.now.Sub(t.Seen.Reserved),
		Fail{Transfer: t.ID, Code: events.NotArrived, In: []projections.Phase{projections.Claimed}})
}

func planConsumed(s Standing, t projections.Transfer, w watch) act {
	holder := owns(s, w.self)
	in := []projections.Phase{projections.Consumed}
	if s.HasSession && !s.Session.Open && s.Session.Server == t.Destination() && s.Session.Join == t.Consumed.Join {
		return w.inTurn(t, holder, w.now.Sub(s.Session.Seen), Fail{Transfer: t.ID, Code: events.PlayerLeft, In: in})
	}
	fail := Fail{Transfer: t.ID, Code: events.PlacementUnconfirmed, In: in}
	if since, yes := w.reborn(t); yes {
		return w.inTurn(t, holder, w.now.Sub(since), fail)
	}
	if !w.reported() {
		return idle{}
	}
	return w.inTurn(t, holder, w.now.Sub(t.Seen.Last)-w.timing.Placement, fail)
}

// atDeadline gives the command once the token's time is over: at the ttl for the owner of
// the session, a slack later and in turn for others.
func (w watch) atDeadline(s Standing, t projections.Transfer, age time.Duration, c Command) act {
	over := age - ttl(t)
	if !owns(s, w.self) {
		over -= w.timing.TTLSlack
	}
	return w.inTurn(t, owns(s, w.self), over, c)
}

// inTurn gives the command when it is over time and this dispatcher's turn. The first turn
// is the owner's; a dispatcher that has not watched long enough has none.
func (w watch) inTurn(t projections.Transfer, owner bool, over time.Duration, c Command) act {
	if !owner {
		if !w.sighted() {
			return idle{}
		}
		over -= w.turn(t.ID)
	}
	if over < 0 {
		return idle{}
	}
	return do{c}
}

// turn is how long this dispatcher waits for those before it in this transfer's order.
func (w watch) turn(id events.TransferID) time.Duration {
	return time.Duration(w.rank(id[:])) * turnStep
}

// rank counts the living dispatchers whose turn comes before this one's, in an order that is
// another one for each thing to be done.
func (w watch) rank(thing []byte) int {
	rank := 0
	mine := turnHash(thing, w.self.ID)
	for _, p := range w.fleet.Proxies {
		if p.Proxy != w.self.ID && w.fleet.Silence(p.Seen, w.now) <= w.timing.Stale && turnHash(thing, p.Proxy) < mine {
			rank++
		}
	}
	return rank
}

func turnHash(thing []byte, host events.HostID) uint64 {
	h := fnv.New64a()
	h.Write(thing)
	h.Write([]byte(host))
	return h.Sum64()
}

// hears tells that this dispatcher sees what happens: it has not slept, nor does its connection
// hang.
func (w watch) hears() bool { return w.fleet.Hears(w.now, w.timing.Stale) }

func (w watch) sighted() bool {
	return w.fleet.Sighted(w.now, w.timing.Stale, w.timing.Stale+time.Second+w.jitter)
}

// owns tells that this life of a dispatcher holds the player's session, or held it last.
func owns(s Standing, src events.Source) bool {
	return s.HasSession && s.Session.Holder == src.ID && s.Session.HolderIncarnation == src.Incarnation
}

// absent tells since when nobody holds the player: the close was seen, or the holder is
// presumed dead.
func (w watch) absent(s Standing) (time.Time, bool) {
	if !s.Session.Open {
		return s.Session.Seen, true
	}
	gone := w.presumedDead(s.Session.Holder, s.Session.HolderIncarnation)
	return w.now.Add(-gone.over), gone.yes
}

// reborn tells since when the destination lives anew: the promise died with its old life.
// The snapshot of the reservation knew the old life, so another one in a later heartbeat is
// newer.
func (w watch) reborn(t projections.Transfer) (since time.Time, yes bool) {
	b := w.fleet.Backend(t.Reserved.Server)
	if b == nil || b.Incarnation == t.Reserved.Incarnation || b.Seq <= t.Reserved.Decision.Snapshot {
		return time.Time{}, false
	}
	return b.Since, true
}

func (w watch) reopenable(s Standing, t projections.Transfer) *Reopen {
	if !holds(s, w.self) || s.Session.Server != t.Claim.From || w.now.Sub(t.Seen.Claimed) <= w.timing.ClaimReanimate || !w.sighted() {
		return nil
	}
	gone := w.presumedDead(t.Claim.Dispatcher, t.Claim.Incarnation)
	if !gone.yes {
		return nil
	}
	return &Reopen{
		Token: t.Token, By: w.self, Claim: t.ClaimSeq, Evidence: gone.evidence,
		LastBeat: gone.beat, SilenceMs: gone.silence.Milliseconds(),
	}
}

// death is why a dispatcher is presumed dead.
type death struct {
	yes      bool
	evidence events.Code
	beat     uint64
	silence  time.Duration
	over     time.Duration // how long it has been so
}

// presumedDead judges a life of a dispatcher by what this one saw with its own eyes: a live
// beat of another life, its own goodbye, or silence.
func (w watch) presumedDead(id events.HostID, inc events.Incarnation) death {
	if id == w.self.ID {
		return death{yes: inc != w.self.Incarnation, evidence: events.NewIncarnation, over: w.fleet.Silence(time.Time{}, w.now)}
	}
	if !w.sighted() {
		return death{}
	}
	p := w.fleet.Proxy(id)
	if p == nil {
		silent := w.fleet.Silence(time.Time{}, w.now)
		return death{yes: silent > w.timing.Stale, evidence: events.Stale, silence: silent, over: silent - w.timing.Stale}
	}
	d := death{beat: p.Seq, silence: w.fleet.Silence(p.Seen, w.now)}
	switch {
	case p.Live && p.Incarnation != inc:
		d.yes, d.evidence, d.over = true, events.NewIncarnation, w.now.Sub(p.Since)
	case p.Live && p.State == events.ShuttingDown:
		d.yes, d.evidence, d.over = true, events.NotReady, d.silence
	case d.silence > w.timing.Stale:
		d.yes, d.evidence, d.over = true, events.Stale, d.silence-w.timing.Stale
	}
	return d
}

// maxTTL is the longest time for which a destination promises anything.
const maxTTL = time.Hour

// ttl is how long a token lasts: no fact makes it outlast every promise.
func ttl(t projections.Transfer) time.Duration {
	return time.Duration(min(t.Reserved.TTLMs, maxTTL.Milliseconds())) * time.Millisecond
}
