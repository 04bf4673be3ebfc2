package archive

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// network is the name of the network in the tests.
const network = "test"

// chronicle writes the facts of many transfers into a log, interleaved as a busy network does.
type chronicle struct {
	t   testing.TB
	log *streamtest.Memory
	rnd *rand.Rand

	guard map[events.PlayerID]uint64
	open  []*tale
	next  int
}

// tale is one transfer under way.
type tale struct {
	player  events.PlayerID
	id      events.TransferID
	name    string
	attempt int
	claim   uint64
	facts   []func() events.Fact // what is still to come
}

func newChronicle(t testing.TB, seed uint64) *chronicle {
	return &chronicle{t: t, log: streamtest.NewMemory(), rnd: rand.New(rand.NewPCG(seed, 1)), guard: map[events.PlayerID]uint64{}}
}

func player(n int) (events.PlayerID, string) {
	name := fmt.Sprintf("Player%d", n)
	return events.OfflinePlayer(name), name
}

// run writes n messages.
func (c *chronicle) run(n int) {
	for range n {
		switch pick := c.rnd.IntN(100); {
		case pick < 2:
			c.garbage()
		case pick < 4:
			c.log.Inject(events.Audit, "e1.WRONG_PLAYER", c.audit().Header, c.audit().Body)
		case len(c.open) < 12:
			c.begin()
		default:
			c.goOn(c.rnd.IntN(len(c.open)))
		}
	}
}

// id is the same for the same seed.
func (c *chronicle) id() (id events.TransferID) {
	binary.BigEndian.PutUint64(id[8:], c.rnd.Uint64())
	id[6], id[8] = 0x70, 0x80
	return id
}

func (c *chronicle) audit() events.Message {
	return streamtest.Fact(c.t, "e1.WRONG_PLAYER", 0, &events.Rejected{Source: "/edge/e1/x", Code: events.WrongPlayer, Subject: "x", Detail: "token shown by Mallory"})
}

func (c *chronicle) begin() {
	who, name := player(c.rnd.IntN(60))
	for _, t := range c.open {
		if t.player == who {
			return
		}
	}
	c.next++
	t := &tale{player: who, name: name, id: c.id()}
	c.open = append(c.open, t)
	c.put(t, &events.Requested{Trigger: events.TriggerCommand, Origin: "lobby-1", Name: name, Wish: events.Wish{Region: []string{"", "spawn"}[c.next%2]}})
	t.facts = c.fate(t)
}

// fate is one of the ways in which a transfer goes on.
func (c *chronicle) fate(t *tale) []func() events.Fact {
	server := events.HostID(fmt.Sprintf("survival-%d", 1+c.rnd.IntN(3)))
	life := streamtest.Source(events.SourceBackend, server).Incarnation
	why := events.Decision{Policy: "kept/1", Snapshot: 7, AgeMs: 12, Candidates: []events.Candidate{{Server: server, Region: "spawn", Score: 0.25, Terms: []events.Term{}}, {Server: "survival-9", Region: "spawn", Score: 0.5, Terms: []events.Term{}}}, Filtered: []events.Filtered{{Code: events.Drained, Count: 1, Examples: []string{"survival-8"}}}}
	reserve := func() events.Fact {
		t.attempt++
		return &events.Reserved{Attempt: t.attempt, Server: server, Incarnation: life, Promise: 1, Region: "spawn", At: events.Position{World: "overworld", X: 1.5, Y: 64}, TTLMs: 30000, Decision: why}
	}
	claim := func() events.Fact {
		return &events.Claimed{Attempt: t.attempt, Dispatcher: "e1", Incarnation: streamtest.Source(events.SourceEdge, "e1").Incarnation, Session: 1, From: "lobby-1"}
	}
	move := func() events.Fact {
		return &events.Transferred{Attempt: t.attempt, How: events.HowTransfer, Result: events.MoveSent}
	}
	arrive := func() events.Fact {
		return &events.Consumed{Attempt: t.attempt, Server: server, Incarnation: life, Join: events.JoinID{15: 1}}
	}
	place := func() events.Fact { return &events.Completed{Attempt: t.attempt} }
	expire := func() events.Fact { return &events.Expired{Attempt: t.attempt, Reason: events.TTLPassed} }
	release := func() events.Fact { return &events.Released{Attempt: t.attempt, Reason: events.MoveRefused} }
	reopen := func() events.Fact {
		return &events.Reopened{Attempt: t.attempt, Claim: t.claim, Evidence: events.Stale}
	}
	wait := func() events.Fact { return &events.Waitlisted{Decision: why} }
	fail := func() events.Fact { return &events.Failed{Code: events.NoCandidate, Detail: "nobody", Decision: &why} }
	lose := func() events.Fact { return &events.Failed{Code: events.NotArrived} }
	cancel := func() events.Fact { return &events.Cancelled{Code: events.GraceOver} }
	fates := [][]func() events.Fact{
		{reserve, claim, move, arrive, place},
		{reserve, claim, move, arrive, place},
		{wait, reserve, claim, move, arrive, place},
		{reserve, expire, reserve, claim, move, arrive, place},
		{reserve, claim, release, reserve, claim, move, lose},
		{reserve, claim, reopen, claim, move, arrive, place},
		{fail},
		{wait, cancel},
	}
	return fates[c.rnd.IntN(len(fates))]
}

func (c *chronicle) goOn(i int) {
	t := c.open[i]
	if c.rnd.IntN(30) == 0 {
		c.put(t, &events.Completed{Attempt: 9}) // which is impossible, and counts
	}
	c.put(t, t.facts[0]())
	if t.facts = t.facts[1:]; len(t.facts) == 0 {
		c.open = append(c.open[:i], c.open[i+1:]...)
	}
}

func (c *chronicle) put(t *tale, f events.Fact) uint64 {
	key := events.TransferKey(t.player, t.id)
	e := events.Envelope{ID: streamtest.NewID[events.EventID](), Source: streamtest.Source(events.SourceEdge, "e1"), Key: key, Correlation: t.id, Prev: c.guard[t.player]}
	m := streamtest.Seal(c.t, e, f)
	seq := c.log.Inject(m.Bucket, m.Key, m.Header, m.Body)
	c.guard[t.player] = seq
	if _, ok := f.(*events.Claimed); ok {
		t.claim = seq
	}
	return seq
}

// garbage is what no fold takes: it moves a guard all the same.
func (c *chronicle) garbage() {
	if len(c.open) == 0 {
		return
	}
	t := c.open[c.rnd.IntN(len(c.open))]
	key := events.TransferKey(t.player, t.id)
	c.guard[t.player] = c.log.Inject(events.Transfers, key, events.Header{"KV-Operation": "DEL"}, nil)
}

// still is a log that does not grow, with stored times of its own.
type still struct{ *streamtest.Memory }

// Tail implements projections.Tailer.
func (l still) Tail(ctx context.Context, b events.Bucket, from events.TailStart, f events.Follower) error {
	records := l.Records(b)
	last := uint64(len(records))
	f.Begin(events.StreamState{Incarnation: "memory-0-1", First: 1, Last: last}, false)
	for i, r := range records {
		if r.Seq <= from.Cursor.Seq {
			continue
		}
		r.Stored = time.Date(2026, 1, 31, 12, 0, 0, i*250_000_000, time.UTC)
		if err := f.Record(r); err != nil {
			return err
		}
	}
	f.Live(last)
	<-ctx.Done()
	return ctx.Err()
}
