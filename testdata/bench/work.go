package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/landfall/landfall/events"
)

const (
	maxClaimers = 256
	// contendedEvery: each tenth token is claimed by two at once, and one of them must lose.
	contendedEvery = 10
)

// token is one reservation that waits to be claimed, in one system.
type token struct {
	player   events.PlayerID
	transfer events.TransferID
	pending  uint64 // where the log has its reservation; other systems need no such thing

	tried  atomic.Bool
	wins   atomic.Int32
	winner atomic.Int32 // of the last win
}

func newTokens(n int) []*token {
	out := make([]*token, n)
	for i := range out {
		out[i] = &token{player: events.PlayerID(uuid.New()), transfer: events.TransferID(uuid.Must(uuid.NewV7()))}
	}
	return out
}

// id is the token as Redis and PostgreSQL know it.
func (t *token) id() string { return t.transfer.String() }

// system keeps tokens. Its methods are safe for concurrent use.
type system interface {
	// fill stores tokens as pending, as fast as it can.
	fill(ctx context.Context, tokens []*token) error
	// claim turns one token from pending into claimed, and tells whether this claimer did it. It returns once that is
	// as durable as the system is set to make it.
	claim(ctx context.Context, claimer int, t *token) (won bool, err error)
	// claims gives who has claimed each token, by the system's own records, and calls seen once for each claim of its audit.
	claims(ctx context.Context, seen func(id string, claimer int)) error
}

// run is what one measurement gave.
type run struct {
	won       int
	perSecond float64
	p50, p99  time.Duration // of claims that won
	cpu       time.Duration // of everybody, for each claim that won
	lost      int           // claims that another claimer had won
}

// claimAll lets so many claimers take tokens off one line for at most so long.
func claimAll(ctx context.Context, s system, tokens []*token, claimers int, limit time.Duration) (run, error) {
	line := lineOf(tokens, claimers)
	took := make([][]time.Duration, claimers)
	lost := make([]int, claimers)
	errs := make([]error, claimers)
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for c := range claimers {
		took[c] = make([]time.Duration, 0, len(line)/claimers+1)
		wg.Go(func() {
			for time.Since(began) < limit {
				i := next.Add(1) - 1
				if i >= int64(len(line)) {
					return
				}
				t := line[i]
				t.tried.Store(true)
				start := time.Now()
				won, err := s.claim(ctx, c, t)
				if err != nil {
					errs[c] = fmt.Errorf("claim %s: %w", t.id(), err)
					return
				}
				if !won {
					lost[c]++
					continue
				}
				took[c] = append(took[c], time.Since(start))
				t.wins.Add(1)
				t.winner.Store(int32(c)) //nolint:gosec // at most maxClaimers
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(began)
	all := slices.Concat(took...)
	if err := errors.Join(errs...); err != nil || len(all) == 0 {
		return run{}, errors.Join(err, ctx.Err())
	}
	slices.Sort(all)
	r := run{won: len(all), perSecond: float64(len(all)) / elapsed.Seconds(), p50: quantile(all, 0.5), p99: quantile(all, 0.99)}
	for _, n := range lost {
		r.lost += n
	}
	return r, nil
}

// lineOf has every token once and, when there is more than one claimer, the contended ones twice in a row.
func lineOf(tokens []*token, claimers int) []*token {
	line := make([]*token, 0, len(tokens)+len(tokens)/contendedEvery+1)
	for i, t := range tokens {
		line = append(line, t)
		if claimers > 1 && i%contendedEvery == 0 {
			line = append(line, t)
		}
	}
	return line
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// checkClaims holds what the claimers heard against what the system has: each token that was tried has one winner, and
// the record names it; no other token has been claimed.
func checkClaims(ctx context.Context, s system, tokens []*token) error {
	have := map[string][]int{}
	if err := s.claims(ctx, func(id string, claimer int) { have[id] = append(have[id], claimer) }); err != nil {
		return err
	}
	bad := 0
	for _, t := range tokens {
		var want []int
		if t.tried.Load() {
			want = []int{int(t.winner.Load())}
		}
		if wins := int(t.wins.Load()); wins != len(want) || !slices.Equal(have[t.id()], want) {
			bad++
		}
		delete(have, t.id())
	}
	if bad > 0 || len(have) > 0 {
		return fmt.Errorf("%d of %d tokens were not claimed exactly once by whoever heard so, %d claims are of no token", bad, len(tokens), len(have))
	}
	return nil
}
