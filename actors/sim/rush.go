package sim

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Rush is players who stand in a lobby and all ask for any place at once, where there is room for
// few, until a server with room for all returns.
type Rush struct {
	Stage   *Stage
	Players int
	Returns events.HostID // the server that is down until then
	Stands  time.Duration // how long the line stands before that
	Within  time.Duration // how long it may take to empty
	Every   time.Duration // how often Say is called
	Say     func(RushMoment)
}

// RushMoment is how far a rush has come.
type RushMoment struct {
	ElapsedMs int64 `json:"elapsedMs"`
	InLine    int   `json:"inLine"`
	Arrived   int   `json:"arrived"`
	Back      bool  `json:"back"` // the server has returned
}

// String is the line for people.
func (m RushMoment) String() string {
	what := "no room for them"
	if m.Back {
		what = "the server is back"
	}
	return fmt.Sprintf("%6.1f s  %4d in line  %4d arrived   %s", float64(m.ElapsedMs)/1000, m.InLine, m.Arrived, what)
}

// RushReport is what became of a rush.
type RushReport struct {
	Players   int     `json:"players"`
	First     int     `json:"first"`     // who arrived before the server returned
	Waited    int     `json:"waited"`    // who did not
	Told      int     `json:"told"`      // those of them who read a position
	Arrived   int     `json:"arrived"`   // in the end
	EmptiedMs int64   `json:"emptiedMs"` // from the return of the server to the last arrival
	PerSecond float64 `json:"perSecond"` // arrivals a second meanwhile
	Overtaken int     `json:"overtaken"` // the most who went before one who had waited longer
}

// Run plays it, until everybody has arrived or it has taken too long.
func (r Rush) Run(ctx context.Context) (RushReport, error) {
	var wg sync.WaitGroup
	defer wg.Wait()
	life, end := context.WithCancel(ctx)
	defer end()
	load := Load{Stage: r.Stage, Players: r.Players}
	clients := load.join(life, &wg)
	load.awaitJoins(life, clients)
	began, report := time.Now(), RushReport{Players: r.Players}
	for _, c := range clients {
		c.Ask("")
	}
	f := follower{r, clients, began}
	f.until(life, false, r.Stands, func(RushMoment) bool { return false })
	report.First = r.arrived(clients)
	report.Waited = r.Players - report.First
	waiting := slices.DeleteFunc(slices.Clone(clients), func(c *Client) bool { return r.done(c) })
	r.Stage.Worlds()[r.Returns].Restart()
	back := time.Now()
	last := f.until(life, true, r.Within, func(m RushMoment) bool { return m.Arrived == r.Players })
	took := time.Since(back)
	report.Arrived, report.EmptiedMs = last.Arrived, took.Milliseconds()
	report.PerSecond = float64(last.Arrived-report.First) / took.Seconds()
	for _, c := range waiting {
		if slices.ContainsFunc(c.Look().Texts, isPosition) {
			report.Told++
		}
	}
	return report, ctx.Err()
}

// follower looks how far a rush has come.
type follower struct {
	Rush

	clients []*Client
	began   time.Time
}

// until watches until it is over, or for so long.
func (f follower) until(ctx context.Context, back bool, most time.Duration, over func(RushMoment) bool) RushMoment {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var said time.Time
	for {
		m := f.moment(back)
		last := over(m)
		if last || time.Since(said) >= f.Every {
			said = time.Now()
			f.Say(m)
		}
		if last {
			return m
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return f.moment(back)
		}
	}
}

func (f follower) moment(back bool) RushMoment {
	return RushMoment{
		ElapsedMs: time.Since(f.began).Milliseconds(), Back: back, Arrived: f.arrived(f.clients), InLine: f.Stage.Observer().View().Ahead(math.MaxUint64),
	}
}

func (r Rush) arrived(clients []*Client) (n int) {
	for _, c := range clients {
		if r.done(c) {
			n++
		}
	}
	return n
}

// done tells that the log has a player's arrival.
func (r Rush) done(c *Client) bool {
	last := r.Stage.Observer().View().Player(c.ID).Last()
	return last != nil && last.Phase == projections.Completed
}

// isPosition tells that a text says where in line its reader is.
func isPosition(text string) bool {
	var n int
	shipped := actors.ShippedMessages()["transfer.position"]
	for i, c := range shipped {
		if c == '{' {
			_, err := fmt.Sscanf(text, shipped[:i]+"%d", &n)
			return err == nil
		}
	}
	return false
}

// Overtaken is the most who were promised a place on a server before one who had asked earlier,
// of the facts of a log after since, in order.
func Overtaken(facts iter.Seq2[events.Event, error], since uint64, server events.HostID) (most int, err error) {
	places := map[events.TransferID]uint64{}
	type grant struct{ promise, place uint64 }
	var grants []grant
	for e, err := range facts {
		if err != nil {
			return 0, err
		}
		if e.Seq <= since {
			continue
		}
		switch f := e.Fact.(type) {
		case *events.Requested:
			places[e.Correlation] = e.Seq
		case *events.Reserved:
			if f.Server == server {
				grants = append(grants, grant{f.Promise, places[e.Correlation]})
			}
		default:
		}
	}
	slices.SortFunc(grants, func(a, b grant) int { return int(a.promise) - int(b.promise) }) //nolint:gosec // far below
	for i, g := range grants {
		n := 0
		for _, earlier := range grants[:i] {
			if earlier.place > g.place {
				n++
			}
		}
		most = max(most, n)
	}
	return most, nil
}
