package main

import (
	"fmt"
	"slices"

	"github.com/landfall/landfall/events"
)

// seals holds checkpoints against each other, and against the facts they seal, in one pass
// over each: the checkpoints are known before their facts are read.
type seals struct {
	checkpoints []events.Checkpoint // as the log holds them, in order
	to          uint64              // last sequence that one of them seals
	waiting     []*sealing          // those whose facts have not all come, in order
}

// sealing is a checkpoint, and what was found of what it seals.
type sealing struct {
	events.Checkpoint
	found *events.Segment
}

func (s *seals) add(c events.Checkpoint) {
	s.checkpoints = append(s.checkpoints, c)
	s.to = max(s.to, c.To)
	s.waiting = append(s.waiting, &sealing{Checkpoint: c, found: events.NewSegment(c.Prev)})
}

// begin drops those of which retention has begun to take the facts.
func (s *seals) begin(first uint64) {
	s.waiting = slices.DeleteFunc(s.waiting, func(c *sealing) bool { return c.From < first })
}

// follow takes in the next fact, and gives the broken ones of the checkpoints that end before it.
func (s *seals) follow(rec events.Record) []*sealing {
	broken := s.complete(rec.Seq - 1)
	for _, c := range s.waiting {
		if rec.Seq < c.From {
			break
		}
		c.found.Add(rec)
	}
	return broken
}

// complete ends the checkpoints that seal nothing beyond a sequence, and gives the broken ones, once each.
func (s *seals) complete(seq uint64) (broken []*sealing) {
	for len(s.waiting) > 0 && s.waiting[0].To <= seq {
		if s.waiting[0].broken() {
			broken = append(broken, s.waiting[0])
		}
		s.waiting = s.waiting[1:]
	}
	return broken
}

// broken tells that other facts are there than those that were sealed.
func (s *sealing) broken() bool { return s.found.Hash() != s.Hash || s.found.Count() != s.Count }

// unsealed notes broken checkpoints, once every other finding of their facts is known: it names the first of those.
func (v *verifier) unsealed(broken []*sealing) {
	for _, s := range broken {
		v.find(findCheckpoint, events.Transfers, v.firstWithin(s.Checkpoint), fmt.Sprintf(
			"checkpoint %d sealed %s from %d to %d, and other ones are there (%d)", s.Number, plural(s.Count, "fact"), s.From, s.To, s.found.Count()))
	}
}

// chained checks that the checkpoints follow each other, and that the log reaches as far as they do.
func (v *verifier) chained(end uint64) {
	for i, c := range v.seals.checkpoints {
		if i > 0 && !c.Follows(v.seals.checkpoints[i-1]) {
			before := v.seals.checkpoints[i-1]
			v.find(findCheckpoint, events.Transfers, min(c.From, before.To+1), fmt.Sprintf("checkpoint %d does not follow checkpoint %d", c.Number, before.Number))
		}
		if c.To > end {
			v.find(findLost, events.Transfers, end+1, fmt.Sprintf("checkpoint %d seals facts up to %d, the log ends at %d", c.Number, c.To, end))
		}
	}
}

// firstWithin is the first bad sequence that is known inside a checkpoint, else its first.
func (v *verifier) firstWithin(c events.Checkpoint) uint64 {
	first := c.From
	for _, f := range v.findings {
		if f.Bucket == events.Transfers && f.Seq >= c.From && f.Seq <= c.To && (first == c.From || f.Seq < first) {
			first = f.Seq
		}
	}
	return first
}

// remembers holds the log, which ends there, against a checkpoint that a host has seen.
func (v *verifier) remembers(m events.Checkpoint, end uint64) {
	held := v.seals.checkpoints
	i := slices.IndexFunc(held, func(c events.Checkpoint) bool { return c.Number == m.Number })
	switch {
	case i >= 0 && held[i].Hash != m.Hash:
		v.find(findCheckpoint, events.Transfers, m.From, fmt.Sprintf("a host remembers checkpoint %d with another hash: from there on this is another log", m.Number))
	case i < 0 && end < m.To:
		v.find(findLost, events.Transfers, end+1, fmt.Sprintf("a host remembers checkpoint %d, up to %d; the log ends at %d", m.Number, m.To, end))
	case i < 0 && (len(held) == 0 || held[len(held)-1].Number < m.Number):
		v.find(findLost, events.Checkpoints, 0, fmt.Sprintf("a host remembers checkpoint %d, and the log does not hold it", m.Number))
	}
}
