package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// topFrame is what top shows at one moment.
type topFrame struct {
	Kind  string    `json:"kind"` // always "top"
	Store string    `json:"store"`
	Time  time.Time `json:"time"`
	// Lost is why the store cannot be seen, empty when it can; LostMs for how long.
	Lost    string `json:"lost,omitempty"`
	LostMs  int64  `json:"lostMs,omitempty"`
	Stopped bool   `json:"stopped,omitempty"` // no process has the store open: it is as it was left
	Last    uint64 `json:"last"`              // last sequence of transfers that was seen

	Rates     topRates      `json:"rates"`
	Control   []controlRow  `json:"control"` // what operators decided that holds
	Fleet     []fleetRow    `json:"fleet"`
	Line      []lineRow     `json:"line"`
	Transfers []transferRow `json:"transfers"` // those that are not in line, oldest first
	Failures  []topFailure  `json:"failures"`  // newest first
}

// String implements fmt.Stringer.
func (f topFrame) String() string { return topView(f, topScreen{width: topWidth}) }

// topRates are how many a second, over the last seconds.
type topRates struct {
	Facts    float64 `json:"facts"`
	Requests float64 `json:"requests"`
	Arrivals float64 `json:"arrivals"`
	Failures float64 `json:"failures"`
	OverMs   int64   `json:"overMs"` // how long was watched, at most 10 s
}

// topFailure is a transfer that ended without an arrival.
type topFailure struct {
	Seq      uint64            `json:"seq"`
	At       time.Time         `json:"at"`
	Transfer events.TransferID `json:"transfer"`
	Player   events.PlayerID   `json:"player"`
	Name     string            `json:"name"`
	Code     events.Code       `json:"code"`
	Detail   string            `json:"detail,omitempty"`
}

// topStale is the silence after which a host shows as silent.
const topStale = 3 * time.Second

// frameOf makes the picture of a view.
func frameOf(v *projections.View, now time.Time) topFrame {
	at := map[events.Bucket]standpoint{}
	for _, b := range viewBuckets {
		at[b] = standpoint{Time: now}
	}
	f := &frozen{View: v, At: at}
	out := topFrame{
		Kind: "top", Time: now.UTC(), Last: v.Folded(),
		Control: rowsAs[controlRow](controlRows(f)), Fleet: rowsAs[fleetRow](fleetRows(f)), Line: rowsAs[lineRow](lineRows(f)),
		Transfers: rowsAs[transferRow](transferRows(f)), Failures: []topFailure{},
	}
	waiting := map[events.TransferID]bool{}
	for _, r := range out.Line {
		waiting[r.Transfer] = true
	}
	out.Transfers = slices.DeleteFunc(out.Transfers, func(r transferRow) bool { return waiting[r.Transfer] })
	return out
}

func rowsAs[T stateRow](rows []stateRow) []T {
	out := make([]T, 0, len(rows))
	for _, r := range rows {
		if x, ok := r.(T); ok {
			out = append(out, x)
		}
	}
	return out
}

// topSpan is how long rates look back.
const topSpan = 10 * time.Second

// keptFailures is how many failures are remembered.
const keptFailures = 50

// pulses count what has happened of late.
type pulses struct {
	since time.Time // nothing before it was seen
	ticks []tick
	fails []topFailure // oldest first
}

// tick is what one fact was.
type tick struct {
	at   time.Time
	kind tickKind
}

type tickKind uint8

const (
	tickOther tickKind = iota
	tickRequest
	tickArrival
	tickFailure
)

// take counts a fact of transfers that was stored at a moment of the watcher's clock.
func (p *pulses) take(e events.Event, player events.PlayerID, at time.Time) {
	t := tick{at: at}
	failed := topFailure{Seq: e.Seq, At: at.UTC(), Transfer: e.Correlation, Player: player}
	switch f := e.Fact.(type) {
	case *events.Requested:
		t.kind = tickRequest
	case *events.Consumed:
		t.kind = tickArrival
	case *events.Failed:
		t.kind, failed.Code, failed.Detail = tickFailure, f.Code, f.Detail
	case *events.Cancelled:
		failed.Code, failed.Detail = f.Code, f.Detail
	default:
	}
	p.ticks = append(p.ticks, t)
	if failed.Code != "" {
		p.fails = append(p.fails, failed)
		p.fails = p.fails[max(len(p.fails)-keptFailures, 0):]
	}
}

// rates forgets what is long ago, and counts the rest.
func (p *pulses) rates(now time.Time) (r topRates) {
	begin := now.Add(-topSpan)
	p.ticks = slices.DeleteFunc(p.ticks, func(t tick) bool { return t.at.Before(begin) })
	span := min(topSpan, now.Sub(p.since))
	if p.since.IsZero() || span <= 0 {
		return r
	}
	var n [tickFailure + 1]float64
	for _, t := range p.ticks {
		n[t.kind]++
	}
	per := span.Seconds()
	return topRates{
		Facts: float64(len(p.ticks)) / per, Requests: n[tickRequest] / per, Arrivals: n[tickArrival] / per, Failures: n[tickFailure] / per,
		OverMs: span.Milliseconds(),
	}
}

// failures are the last ones, newest first.
func (p *pulses) failures(name func(events.PlayerID) string) []topFailure {
	out := slices.Clone(p.fails)
	slices.SortFunc(out, func(a, b topFailure) int { return cmp.Compare(b.Seq, a.Seq) })
	for i := range out {
		out[i].Name = name(out[i].Player)
	}
	return out
}
