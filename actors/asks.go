package actors

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// dispatcherQueue makes one dispatcher answer each request of a backend.
const dispatcherQueue = "dispatchers"

// serveAsks answers the backends, unless this proxy is drained: others do.
func (d *Dispatcher) serveAsks(ctx context.Context, g *errgroup.Group) {
	serve := func(v events.Verb, handle func(context.Context, string, events.Wire) events.Wire) {
		g.Go(func() error {
			return d.whileOpen(ctx, func(ctx context.Context) error {
				return d.bus.Serve(ctx, events.AskOf("*", v), dispatcherQueue, func() {}, handle)
			})
		})
	}
	serve(events.VerbRequest, answerWatched(d.Identity, fromBackend(events.VerbRequest), d.rejectedAsk, refuseRequest, d.answerRequest))
	serve(events.VerbArrived, answerWatched(d.Identity, fromBackend(events.VerbArrived), d.rejectedAsk, refuseArrived, d.answerArrived))
	serve(events.VerbPlaced, answerWatched(d.Identity, fromBackend(events.VerbPlaced), d.rejectedAsk, refusePlain, d.answerPlaced))
	serve(events.VerbCancel, answerWatched(d.Identity, fromBackend(events.VerbCancel), d.rejectedAsk, refusePlain, func(ctx context.Context, from events.HostID, q events.CancelAsk) events.Answer {
		return d.CancelFor(ctx, q.Player, from)
	}))
	serve(events.VerbState, answerWatched(d.Identity, fromBackend(events.VerbState), d.rejectedAsk, refuseState, d.answerState))
	serve(events.VerbSettings, answerWatched(d.Identity, fromBackend(events.VerbSettings), d.rejectedAsk, refuseSettings, d.answerSettings))
	serve(events.VerbWhoIs, answerWatched(d.Identity, fromBackend(events.VerbWhoIs), d.rejectedAsk, refuseWhoIs, d.answerWhoIs))
	g.Go(func() error {
		return d.bus.Serve(ctx, events.TriggerOf("*"), dispatcherQueue, func() {}, d.answerEvent)
	})
}

func refuseRequest(r *events.Refusal) events.RequestAnswer {
	return events.RequestAnswer{Code: r.Code, Detail: r.Detail}
}

func refuseArrived(r *events.Refusal) events.ArrivedAnswer {
	return events.ArrivedAnswer{Code: r.Code, Detail: r.Detail}
}

func refuseWhoIs(r *events.Refusal) events.WhoIsAnswer {
	return events.WhoIsAnswer{Code: r.Code, Detail: r.Detail}
}

func refusePlain(r *events.Refusal) events.Answer {
	return events.Answer{Code: r.Code, Detail: r.Detail}
}

func refuseState(r *events.Refusal) events.StateAnswer {
	return events.StateAnswer{Code: r.Code, Detail: r.Detail}
}

// transportDown is the answer when the log cannot be reached: nothing was decided.
func transportDown(err error) *events.Refusal {
	return events.Refuse(events.TransportDown, err.Error())
}

// sessionPatience is how long a request waits for the session of a player who has just joined.
const sessionPatience = time.Second

// answerRequest opens a transfer for a player who stands on the asking backend.
func (d *Dispatcher) answerRequest(ctx context.Context, from events.HostID, q events.RequestAsk) events.RequestAnswer {
	if q.Trigger != events.TriggerCommand && q.Trigger != events.TriggerEvent {
		return refuseRequest(events.Refuse(events.BadRequest, fmt.Sprintf("trigger %q: a backend asks with %s or %s", q.Trigger, events.TriggerCommand, events.TriggerEvent)))
	}
	refusal := d.cfg.Accounts.refuse(from, q.Player, q.Name)
	if refusal != nil {
		return refuseRequest(refusal)
	}
	if q.Permits, refusal = sortedPermits(q.Permits); refusal != nil {
		return refuseRequest(refusal)
	}
	if q.Trigger == events.TriggerEvent {
		if q.Wish, refusal = d.wishOf(q.Via); refusal != nil {
			return refuseRequest(refusal)
		}
	}
	d.keepPermits(q.Player, from, q.Permits)
	d.awaitSession(ctx, q.Player, from)
	return d.Open(ctx, q, from)
}

func (d *Dispatcher) awaitSession(ctx context.Context, player events.PlayerID, server events.HostID) {
	ctx, cancel := context.WithTimeout(ctx, sessionPatience)
	defer cancel()
	d.wakeup.until(ctx, player, func() bool {
		s, ok := d.view.Session(player)
		return ok && s.Open && s.Server == server
	})
}

// Open opens a transfer, or says what stands in its way. origin is the server where the player
// must stand, empty for any.
func (d *Dispatcher) Open(ctx context.Context, q events.RequestAsk, origin events.HostID) events.RequestAnswer {
	if q.Player.IsZero() || q.Transfer.IsZero() {
		return refuseRequest(events.Refuse(events.BadRequest, "want the ids of a player and of a transfer"))
	}
	if a, over := d.outcome(ctx, q); over {
		return a
	}
	w := d.warrantOf(q.Player, q.Name, q.Permits)
	if refusal := admit(ctx, w, &q); refusal != nil {
		return refuseRequest(refusal)
	}
	c := Request{Transfer: q.Transfer, Origin: origin, Fact: events.Requested{
		Trigger: q.Trigger, Via: q.Via, Wish: q.Wish, Origin: origin, Name: q.Name, NativeID: q.NativeID, Bypass: q.Bypass, Wait: q.Wait,
	}}
	if refusal := d.refuseFull(q); refusal != nil {
		return refuseRequest(refusal)
	}
	for range 3 {
		done, refusal, err := d.writeMeasured(ctx, w, c)
		if err != nil {
			return refuseRequest(transportDown(err))
		}
		if refusal == nil {
			d.logger.Info("transfer", "fact", events.TypeName(done.fact), "seq", done.seq, "id", done.transfer, "player", q.Player)
			return events.RequestAnswer{Code: events.Accepted, Transfer: q.Transfer, Place: done.seq, State: string(projections.Requested)}
		}
		a, active := d.active(q)
		switch code := refusal.Code; {
		case active && (code == events.AlreadyActive || code == events.Resting || code == events.LimitReached):
			return a // it goes on, whatever the limits are
		case code == events.AlreadyActive || code == events.WaitABit: // it has ended since
		case code != events.Replaced:
			return refuseRequest(refusal)
		case !d.supersede(ctx, q):
			return changing()
		}
	}
	return changing()
}

// changing answers a request that found something else each time it was tried.
func changing() events.RequestAnswer {
	return refuseRequest(events.Refuse(events.AlreadyMoving, "the transfer under way changed meanwhile: ask again"))
}

// refuseFull refuses a new request that nobody can serve now when nobody more may wait. Who
// is in line already is not new.
func (d *Dispatcher) refuseFull(q events.RequestAsk) *events.Refusal {
	p, rules := d.view.Player(q.Player), d.lineRules.Load()
	if p.Active != nil || p.Find(q.Transfer) != nil || q.Bypass || q.Trigger == events.TriggerEvacuate || !rules.Enabled || d.view.Ahead(math.MaxUint64) < rules.MaxSize {
		return nil
	}
	session, _ := d.view.Session(q.Player)
	if d.anyTurn(projections.Queued{InLine: projections.InLine{Place: math.MaxUint64, Wish: q.Wish}, Session: session}) {
		return nil
	}
	return events.Refuse(events.LineFull, strconv.Itoa(rules.MaxSize)+" wait already")
}

// supersede ends the active transfer in favour of another wish.
func (d *Dispatcher) supersede(ctx context.Context, q events.RequestAsk) bool {
	s := d.standing(q.Player)
	if s.Active == nil {
		return true
	}
	done, refusal, err := d.write(ctx, q.Player, Supersede{Transfer: s.Active.ID, By: q.Transfer})
	if err == nil && refusal == nil {
		d.follow(*s.Active, done)
		d.tellPlayer(q.Player, "transfer.replaced", nil)
	}
	return err == nil
}

// active answers with the state of the transfer under way, or with the outcome of the same id.
func (d *Dispatcher) active(q events.RequestAsk) (events.RequestAnswer, bool) {
	p := d.view.Player(q.Player)
	t := p.Find(q.Transfer)
	if t == nil {
		t = p.Active
	}
	if t == nil {
		return events.RequestAnswer{}, false
	}
	return events.RequestAnswer{Code: events.Active, Transfer: t.ID, Place: t.Place, State: string(t.Phase), Detail: string(t.Code)}, true
}

// CancelFor ends a player's transfer by the player's will, wherever it stands in line; see
// events.CancelAsk. origin is the backend that asks, empty for anybody.
func (d *Dispatcher) CancelFor(ctx context.Context, player events.PlayerID, origin events.HostID) events.Answer {
	before := d.standing(player)
	if origin != "" && (!before.HasSession || !before.Session.Open || before.Session.Server != origin) {
		return events.Answer{Code: events.NotHere, Detail: "the newest session does not name " + string(origin)}
	}
	if before.Active == nil {
		return events.Answer{Code: events.NotKnown}
	}
	return d.Cancel(ctx, player, before.Active.ID)
}

// Cancel ends one transfer of a player, whoever asks; see events.CancelAsk.
func (d *Dispatcher) Cancel(ctx context.Context, player events.PlayerID, transfer events.TransferID) events.Answer {
	before := d.standing(player)
	if before.Active == nil || before.Active.ID != transfer {
		return events.Answer{Code: events.NotKnown}
	}
	done, refusal, err := d.writeFresh(ctx, player, Cancel{Transfer: before.Active.ID, Code: events.Cancel})
	switch {
	case err != nil:
		return refusePlain(transportDown(err))
	case refusal == nil:
		d.follow(*before.Active, done)
		return events.Answer{Code: events.OK}
	case refusal.Code == events.AlreadyMoving:
		return refusePlain(refusal)
	}
	return events.Answer{Code: events.NotKnown, Detail: refusal.Detail}
}

// answerArrived says what to do with a player who joined: PLACE only after the arrival
// stands in the log.
func (d *Dispatcher) answerArrived(ctx context.Context, from events.HostID, q events.ArrivedAsk) events.ArrivedAnswer {
	before := d.standing(q.Player)
	done, refusal, err := d.writeFresh(ctx, q.Player, Consume{Server: from, Incarnation: q.Incarnation, Join: q.Join, Held: q.Held, Listed: q.Listed})
	if err != nil {
		return refuseArrived(transportDown(err))
	}
	s := d.standing(q.Player)
	if refusal == nil && before.Active != nil {
		d.follow(*before.Active, done)
	}
	if a, ok := placeOf(s, from, q.Join); ok {
		return a
	}
	switch {
	case refusal == nil:
		return events.ArrivedAnswer{Code: events.NoPlace, Detail: "the transfer ended meanwhile"}
	case refusal.Code == events.WaitABit:
		return d.early(q, s)
	case refusal.Code == events.PromiseGone:
		return d.promiseGone(ctx, s, refusal)
	}
	return events.ArrivedAnswer{Code: events.NoPlace, Detail: refusal.Detail}
}

// placeOf answers for an arrival that stands in the log: the same join gets the same answer,
// another one a plain join.
func placeOf(s Standing, server events.HostID, join events.JoinID) (events.ArrivedAnswer, bool) {
	t := s.Active
	if t == nil || t.Phase != projections.Consumed || t.Consumed.Server != server {
		return events.ArrivedAnswer{}, false
	}
	if t.Consumed.Join != join {
		return events.ArrivedAnswer{Code: events.NoPlace, Detail: "consumed by another join"}, true
	}
	return events.ArrivedAnswer{Code: events.Place, Token: t.Token, At: t.Reserved.At}, true
}

// early is an arrival ahead of its claim, or one that the destination could not know of yet:
// ask again shortly, within the arrival window of the reservation.
func (d *Dispatcher) early(q events.ArrivedAsk, s Standing) events.ArrivedAnswer {
	if s.Active == nil || s.Active.Phase == projections.Pending && !s.Active.Reopened && len(q.Held) == 0 {
		return events.ArrivedAnswer{Code: events.NoPlace, Detail: "not claimed"}
	}
	d.work.add(q.Player)
	return events.ArrivedAnswer{Code: events.WaitABit, WaitMs: (d.timing.Load().ArrivalWindow / 8).Milliseconds(), Token: s.Active.Token}
}

// promiseGone ends a transfer whose destination has lost the promise: the player is there,
// and nothing waits for the player.
func (d *Dispatcher) promiseGone(ctx context.Context, s Standing, refusal *events.Refusal) events.ArrivedAnswer {
	if s.Active != nil {
		d.finish(ctx, s, Fail{Transfer: s.Active.ID, Code: events.PromiseGone, In: []projections.Phase{projections.Claimed, projections.Pending}})
	}
	return refuseArrived(refusal)
}

// answerPlaced records where the player stands.
func (d *Dispatcher) answerPlaced(ctx context.Context, from events.HostID, q events.PlacedAsk) events.Answer {
	var c Command = Complete{Token: q.Token, Server: from, At: q.At}
	if q.Code != events.OK {
		c = Fail{Transfer: q.Token.Transfer, Code: events.PlacementUnconfirmed, Detail: q.Detail, In: []projections.Phase{projections.Consumed}, Server: from}
	}
	before := d.standing(q.Player)
	done, refusal, err := d.writeFresh(ctx, q.Player, c)
	if err != nil {
		return refusePlain(transportDown(err))
	}
	if refusal == nil && before.Active != nil {
		d.follow(*before.Active, done)
	}
	t := d.view.Player(q.Player).Find(q.Token.Transfer)
	switch {
	case t != nil && t.Phase == projections.Completed: // now, or before and its first answer was lost
		if err := d.charge(ctx, *t); err != nil {
			return refusePlain(transportDown(err)) // it comes again
		}
		return events.Answer{Code: events.OK}
	case refusal == nil, t == nil && d.completedBefore(ctx, q.Player, q.Token):
		return events.Answer{Code: events.OK}
	}
	return refusePlain(refusal)
}

// answerState tells an executor whether a claim is still the latest, as of the leader's
// last sequence. A claim whose destination has died since is no longer good.
func (d *Dispatcher) answerState(ctx context.Context, _ events.HostID, q events.StateAsk) events.StateAnswer {
	last, err := d.leaderSeq(ctx, q.Player)
	if err != nil {
		return refuseState(transportDown(err))
	}
	if err := d.view.WaitFolded(ctx, events.Transfers, last); err != nil {
		return refuseState(transportDown(err))
	}
	s := d.standing(q.Player)
	a := events.StateAnswer{Code: events.OK, Last: last, Folded: d.view.Folded()}
	if s.Active == nil {
		return a
	}
	a.Token, a.State = s.Active.Token, string(s.Active.Phase)
	if s.Active.Phase != projections.Claimed || s.Active.Move != "" || s.Controls.Killed {
		return a
	}
	if _, gone := d.watch().reborn(*s.Active); !gone {
		a.Claim = s.Active.ClaimSeq
	}
	return a
}

// hearNews follows what backends announce.
func (d *Dispatcher) hearNews(ctx context.Context, g *errgroup.Group) {
	hear := func(v events.Verb, heard func(subject string, w events.Wire)) {
		g.Go(func() error { return d.bus.Listen(ctx, events.NewsOf("*", v), func() {}, heard) })
	}
	hear(events.VerbJoined, func(subject string, w events.Wire) {
		var news events.Joined
		if from, ok := d.news(events.VerbJoined, subject, w, &news); ok && !d.misnamed(from, news) {
			d.conns.joined(d, from, news)
		}
	})
	hear(events.VerbLeft, func(subject string, w events.Wire) {
		var news events.Left
		if from, ok := d.news(events.VerbLeft, subject, w, &news); ok {
			d.conns.left(d, from, news)
		}
	})
}

// news verifies an announcement and gives the backend that made it.
func (d *Dispatcher) news(v events.Verb, subject string, w events.Wire, into any) (events.HostID, bool) {
	call, refusal := events.OpenCall(d.Keys, subject, w, into)
	if refusal == nil && (call.Source.Kind != events.SourceBackend || subject != events.NewsOf(call.Source.ID, v)) {
		refusal = events.Refuse(events.AuthFailed, call.Source.String()+" announces over "+subject)
	}
	if refusal != nil {
		d.audit(events.Rejected{Source: w.Header[events.HeaderSource], Code: refusal.Code, Subject: subject, Detail: refusal.Detail})
		return "", false
	}
	return call.Source.ID, true
}
