package sim

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Report is what the log alone, held against what happened to the players, says of a run.
type Report struct {
	Transfers int `json:"transfers"` // that had a fact in this run
	Completed int `json:"completed"`
	Failed    int `json:"failed"` // ended otherwise, with a reason
	Open      int `json:"open"`
	// Lost counts arrivals that the log claims and no server carried out, and requests that
	// were accepted and do not stand in the log.
	Lost int `json:"lost"`
	// Doubled counts players who were placed twice for one token, tokens that were consumed
	// twice, and facts that no honest writer could have written.
	Doubled  int           `json:"doubled"`
	P50Ms    float64       `json:"p50Ms"` // from the request to the arrival, by the log's clock
	P99Ms    float64       `json:"p99Ms"`
	Facts    int           `json:"facts"`    // in the whole log
	Reopened int           `json:"reopened"` // claims of the dead that were taken back
	Survived int           `json:"survived"` // transfers that a dead proxy had claimed and others finished
	Reasons  []ReasonCount `json:"reasons"`  // of those that ended otherwise
	Example  string        `json:"example"`  // a transfer of this run, to replay
}

// ReasonCount counts one way to end.
type ReasonCount struct {
	Code  events.Code `json:"code"`
	Count int         `json:"count"`
}

// auditor goes over the log once.
type auditor struct {
	since     uint64
	worlds    map[events.HostID]*World
	journeys  *projections.Journeys
	requested map[events.TransferID]time.Time
	claimer   map[events.TransferID]events.HostID
	touched   map[events.TransferID]bool
	dead      events.HostID
	deadLast  uint64   // last fact that the dead proxy wrote
	orphans   []uint64 // completions of what it had claimed
	ages      []float64
	reasons   map[events.Code]int
	report    Report
}

// Audit checks the facts of a whole log, in order. since is the last sequence before this
// run, worlds are the servers as they stand now, and dead is the proxy that was killed, if any.
func Audit(facts iter.Seq2[events.Event, error], since uint64, worlds map[events.HostID]*World, dead events.HostID) (Report, error) {
	a := &auditor{
		since: since, dead: dead, worlds: worlds, journeys: projections.NewJourneys(0), requested: map[events.TransferID]time.Time{},
		claimer: map[events.TransferID]events.HostID{}, touched: map[events.TransferID]bool{}, reasons: map[events.Code]int{},
	}
	for e, err := range facts {
		if err != nil {
			return a.report, fmt.Errorf("read the log: %w", err)
		}
		a.take(e)
	}
	return a.finish(), nil
}

func (a *auditor) take(e events.Event) {
	a.report.Facts++
	before := a.held(e.Correlation)
	if refusal := a.journeys.Apply(e, e.Stored); refusal != nil {
		a.report.Doubled++
	}
	if e.Seq <= a.since {
		return
	}
	a.touched[e.Correlation] = true
	if e.Source.ID == a.dead {
		a.deadLast = e.Seq
	}
	a.ended(e)
	switch f := e.Fact.(type) {
	case *events.Requested:
		a.requested[e.Correlation] = e.Stored
	case *events.Claimed:
		a.claimer[e.Correlation] = f.Dispatcher
	case *events.Reopened:
		a.report.Reopened++
	case *events.Consumed:
		if at, ok := a.requested[e.Correlation]; ok {
			a.ages = append(a.ages, float64(e.Stored.Sub(at).Microseconds())/1000)
		}
	case *events.Completed:
		a.completed(before, f)
		if a.claimer[e.Correlation] == a.dead {
			a.orphans = append(a.orphans, e.Seq)
		}
		a.report.Example = e.Correlation.String()
	default:
	}
}

// ended counts how transfers end.
func (a *auditor) ended(e events.Event) {
	t := a.held(e.Correlation)
	if !t.Phase.Terminal() || t.Last != e.Seq {
		return
	}
	if t.Phase == projections.Completed {
		a.report.Completed++
		return
	}
	a.report.Failed++
	a.reasons[t.Code]++
}

// completed holds an arrival of the log against what its server did.
func (a *auditor) completed(t projections.Transfer, f *events.Completed) {
	w := a.worlds[t.Destination()]
	if w == nil {
		return
	}
	switch n := w.Placed(Placement{t.Player, f.At}); {
	case n == 0:
		a.report.Lost++
	case n > 1:
		a.report.Doubled++
	}
}

func (a *auditor) held(id events.TransferID) projections.Transfer {
	player, ok := a.journeys.Owner(id)
	if !ok {
		return projections.Transfer{}
	}
	if t := a.journeys.Player(player).Find(id); t != nil {
		return *t
	}
	return projections.Transfer{}
}

func (a *auditor) finish() Report {
	r := &a.report
	r.Transfers = len(a.touched)
	r.Open = len(a.journeys.Active())
	for _, seq := range a.orphans {
		if seq > a.deadLast {
			r.Survived++
		}
	}
	for code, n := range a.reasons {
		r.Reasons = append(r.Reasons, ReasonCount{code, n})
	}
	slices.SortFunc(r.Reasons, func(x, y ReasonCount) int { return y.Count - x.Count })
	slices.Sort(a.ages)
	r.P50Ms, r.P99Ms = quantile(a.ages, 0.5), quantile(a.ages, 0.99)
	return *r
}

func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
