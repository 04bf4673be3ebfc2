package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
)

// The hosts of a rush: where all stand, where there is room for some, and where for all.
const (
	rushLobby = events.HostID("lobby")
	rushSmall = events.HostID("backend-1")
	rushLarge = events.HostID("backend-2")
)

const (
	rushPlayers = 500
	rushPace    = 20
	rushStands  = 6 * time.Second // the line, before the server returns
)

// shapeOf is what each backend of the rush has to offer.
func (r *demoRun) shapeOf(id events.HostID) sim.Shape {
	switch id {
	case rushSmall:
		return sim.Shape{Seats: r.o.capacity, Keep: r.o.capacity}
	case rushLarge:
		return sim.Shape{Seats: 2 * r.o.players, Keep: r.o.players, Down: true}
	default:
		return sim.Shape{Seats: 2 * r.o.players}
	}
}

// rushSummary is the last word of a rush.
type rushSummary struct {
	sim.RushReport

	Capacity int           `json:"capacity"`
	Pace     float64       `json:"pace"`
	Returned events.HostID `json:"returned"`
	Lost     int           `json:"lost"`
	Doubled  int           `json:"doubled"`
	Dir      string        `json:"dir"`
}

// String is the summary for people.
func (s rushSummary) String() string {
	return fmt.Sprintf(`
%d players asked at once, with room for %d: %d arrived, %d waited in line, %d of them read their position
%s returned: the line emptied in %.1f s, %.1f a second at a pace of %g; nobody was overtaken by more than %d
%d of %d arrived; %d lost, %d doubled
what stood there then?  go run ./cmd/landfall state line --as-of SEQ --store %s`,
		s.Players, s.Capacity, s.First, s.Waited, s.Told, s.Returned, float64(s.EmptiedMs)/1000, s.PerSecond, s.Pace, s.Overtaken,
		s.Arrived, s.Players, s.Lost, s.Doubled, s.Dir)
}

// rush plays the players who all ask at once, and says how the line moves.
func (r *demoRun) rush(ctx context.Context) error {
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	line := actors.ShippedLineRules()
	line.DrainPerSecond, line.MaxSize = r.o.pace, max(line.MaxSize, r.o.players)
	stage := sim.NewStage(stop, sim.StageConfig{
		Proxies: demoProxies, Backends: r.o.backendIDs(), Shape: r.shapeOf, Line: line,
		Tick: 2 * time.Millisecond, Reconnect: 30 * time.Millisecond, Timing: demoTiming,
		Connect: r.connectAs, Identity: r.identity, Logger: r.log, Version: buildInfo().Version,
	})
	crew := newGang(stop)
	crew.start(stage.Run)
	report, err := r.watchRush(stop, stage, crew)
	cancel()
	err = errors.Join(err, crew.stop())
	stage.Net().Wait()
	if err != nil {
		return err
	}
	after := context.WithoutCancel(ctx)
	audit, err := sim.Audit(r.facts(after), r.since, stage.Worlds(), "")
	if err == nil {
		report.Overtaken, err = sim.Overtaken(r.facts(after), r.since, rushLarge)
	}
	if err != nil {
		return err
	}
	s := rushSummary{RushReport: report, Capacity: r.o.capacity, Pace: r.o.pace, Returned: rushLarge, Lost: audit.Lost, Doubled: audit.Doubled, Dir: r.o.dir}
	if err := r.tellRush(s); err != nil {
		return err
	}
	if s.Lost > 0 || s.Doubled > 0 || s.Arrived < s.Players && ctx.Err() == nil {
		return exitWith(statusFailed, fmt.Errorf("%d did not arrive, %d lost, %d doubled: this should never happen, please report it with the directory %s", s.Players-s.Arrived, s.Lost, s.Doubled, s.Dir))
	}
	return nil
}

func (r *demoRun) watchRush(ctx context.Context, stage *sim.Stage, crew *gang) (sim.RushReport, error) {
	select {
	case <-stage.Ready():
	case <-crew.ended():
		return sim.RushReport{}, nil // the reason comes from stop
	case <-ctx.Done():
		return sim.RushReport{}, ctx.Err()
	}
	rush := sim.Rush{
		Stage: stage, Players: r.o.players, Returns: rushLarge, Stands: rushStands, Every: time.Second, Say: func(m sim.RushMoment) { _ = r.out.print(m) },
		Within: time.Duration(float64(r.o.players)/r.o.pace*float64(time.Second)) + 30*time.Second,
	}
	return rush.Run(ctx)
}

func (r *demoRun) tellRush(s rushSummary) error {
	if r.o.json {
		return json.NewEncoder(r.out.w).Encode(s)
	}
	return r.out.print(s)
}
