package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams"
)

// filled is a demo's directory with the log of a network that was busy.
func filled(t *testing.T, facts string) (string, fillSummary) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "busy")
	status, out, errs := landfall(t.Context(), "demo", "--fill", facts, "--dir", dir, "--json")
	if status != statusOK {
		t.Fatalf("status %d\n%s", status, errs)
	}
	return dir, fillEnd(t, out)
}

// The state now is folded from what is alive, and that of a moment from all that was before:
// they are one, but for the pace of the line, which nothing that is alive tells.
func TestStateIsTheSameFromWhatIsAlive(t *testing.T) {
	dir, _ := filled(t, "6000")
	for _, topic := range []string{"transfers", "line", "sessions", "control", "fleet"} {
		booted, folded := stateJSON(t, dir, topic), stateJSON(t, dir, topic, "--as-of", "0s")
		if topic != "control" && len(booted) < 3 {
			t.Errorf("%s: only %d rows", topic, len(booted))
		}
		if !slices.Equal(booted, folded) {
			for i := range min(len(booted), len(folded)) {
				if booted[i] != folded[i] {
					t.Errorf("%s, row %d:\n%s\n%s", topic, i, booted[i], folded[i])
					break
				}
			}
			t.Errorf("%s: %d rows from what is alive, %d from everything", topic, len(booted), len(folded))
		}
	}
}

// stateJSON are the rows of a state, without what differs at any two moments.
func stateJSON(t *testing.T, dir, topic string, args ...string) (rows []string) {
	t.Helper()
	status, out, errs := landfall(t.Context(), append([]string{"state", topic, "--json", "--store", dir}, args...)...)
	if status != statusOK {
		t.Fatalf("state %s: status %d\n%s", topic, status, errs)
	}
	for line := range strings.Lines(out) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		for _, name := range append(aging, "at") {
			delete(row, name)
		}
		text, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, string(text))
	}
	return rows
}

// counting is a log that counts what was read of it.
type counting struct {
	history
	read int
}

func (c *counting) History(ctx context.Context, b events.Bucket, r streams.Range) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		for rec, err := range c.history.History(ctx, b, r) {
			c.read++
			if !yield(rec, err) {
				return
			}
		}
	}
}

// One token of a busy log is found by the time in its id, without reading the log.
func TestReplayReadsNoMoreThanItMust(t *testing.T) {
	dir, s := filled(t, "6000")
	src, err := directory(dir)
	if err != nil {
		t.Fatal(err)
	}
	store, err := src.open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	o, err := newOpener(trust{})
	if err != nil {
		t.Fatal(err)
	}
	log := &counting{history: store}
	var out, notes bytes.Buffer
	r := &replay{log: log, opener: o, out: printer{w: &out}, notes: &notes, sessions: true}
	tell, err := tellToken(s.Example.String())
	if err != nil {
		t.Fatal(err)
	}
	// Everything was written within seconds, the token last: far less than all lies between the
	// moment that its id names and its first fact.
	if status, err := tell(t.Context(), r); err != nil || status != statusOK || log.read > 3000 {
		t.Errorf("status %d, %v, read %d records\n%s", status, err, log.read, notes.String())
	}
}

func TestLooksGrowWiderUntilTheyAreEverywhere(t *testing.T) {
	id := events.TransferID(newID())
	made, _ := madeAt(id)
	got := looks(id)
	if len(got) != 3 || got[2] != (look{}) {
		t.Fatalf("looks at %v", got)
	}
	for i, l := range got[:2] {
		if made.Before(l.from) || made.After(l.to) || i > 0 && (l.from.After(got[i-1].from) || l.to.Before(got[i-1].to)) {
			t.Errorf("look %d from %s to %s for an id made at %s", i, l.from, l.to, made)
		}
	}
	if got := looks(events.TransferID{1}); len(got) != 1 || got[0] != (look{}) {
		t.Errorf("an id without a time: %v", got)
	}
}

// lostStore is a store that is gone in the middle of being read.
type lostStore struct{ history }

func (lostStore) Tail(ctx context.Context, _ events.Bucket, _ events.TailStart, f events.Follower) error {
	f.Begin(events.StreamState{}, false)
	f.Blind(errors.New("connection closed"))
	<-ctx.Done()
	return ctx.Err()
}

var _ projections.Tailer = lostStore{}

func TestStateOfAStoreThatIsLostMeanwhile(t *testing.T) {
	o, err := newOpener(trust{secrets: withKey()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := freeze(ctx, lostStore{newTape(t)}, o, moment{}); err == nil || !strings.Contains(err.Error(), "the store was lost while it was read: connection closed") {
		t.Errorf("the state of a lost store: %v", err)
	}
}
