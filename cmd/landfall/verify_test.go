package main

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/streamtest"
)

// tampered is a log in which some records were changed or removed behind its back.
type tampered struct {
	history
	change func(events.Record) (events.Record, bool)
	ends   map[events.Bucket]uint64 // where buckets end earlier
}

func (x tampered) Info(ctx context.Context, b events.Bucket) (events.StreamState, error) {
	s, err := x.history.Info(ctx, b)
	if end, cut := x.ends[b]; cut {
		s.Last = end
	}
	return s, err
}

func (x tampered) History(ctx context.Context, b events.Bucket, r streams.Range) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		for rec, err := range x.history.History(ctx, b, r) {
			end, cut := x.ends[b]
			keep := !cut || rec.Seq <= end
			if keep && x.change != nil {
				rec, keep = x.change(rec)
			}
			if keep && !yield(rec, err) {
				return
			}
		}
	}
}

// sealedTape holds good stories, each sealed by a checkpoint, and facts behind the last one.
func sealedTape(tb testing.TB) *tape {
	t := newTape(tb)
	prev, from := "", uint64(1)
	for n, name := range []string{"completed", "waitlisted", "expired"} {
		for _, s := range stories {
			if s.name == name {
				s.tell(t)
			}
		}
		records := t.records[events.Transfers]
		segment := events.NewSegment(prev)
		for _, r := range records[from-1:] {
			segment.Add(r)
		}
		to := uint64(len(records))
		number := uint64(n) + 1
		t.put(events.CheckpointKey(number), &events.Checkpoint{Number: number, From: from, To: to, Count: segment.Count(), Hash: segment.Hash(), Prev: prev})
		prev, from = segment.Hash(), to+1
	}
	j := t.begin("Late", 50, events.Wish{})
	j.reserved()
	t.putBy(streamtest.Source(events.SourceOperator, "op"), "drain.survival-9", &events.DrainSet{Host: "survival-9", On: true, Who: "op"})
	return t
}

func verified(t *testing.T, log history, secrets [][]byte, remembered ...events.Checkpoint) (out string, findings []finding, end verifyEnd, status int) {
	t.Helper()
	o, err := newOpener(trust{secrets: secrets})
	if err != nil {
		t.Fatal(err)
	}
	var text, lines bytes.Buffer
	status = statusOf(verify(t.Context(), log, o, remembered, printer{w: &text}))
	if again := statusOf(verify(t.Context(), log, o, remembered, printer{w: &lines, json: true})); again != status {
		t.Errorf("status %d as text, %d as JSON", status, again)
	}
	rows := strings.Split(strings.TrimSpace(lines.String()), "\n")
	for _, row := range rows[:len(rows)-1] {
		var f finding
		if err := json.Unmarshal([]byte(row), &f); err != nil {
			t.Fatal(err)
		}
		findings = append(findings, f)
	}
	if err := json.Unmarshal([]byte(rows[len(rows)-1]), &end); err != nil {
		t.Fatal(err)
	}
	return text.String(), findings, end, status
}

func TestVerifyOfAGoodLog(t *testing.T) {
	log := sealedTape(t)
	text, findings, end, status := verified(t, log, withKey(), last(t, log))
	if status != statusOK || len(findings) > 0 || !end.Verified || end.Checkpoints != 3 || end.SealedTo != 20 {
		t.Errorf("status %d, %+v, %+v\n%s", status, findings, end, text)
	}
	if text, _, end, status := verified(t, log, nil); status != statusIncomplete || !end.Verified || !strings.Contains(text, "not checked for lack of their key") {
		t.Errorf("without a key: status %d, %s", status, text)
	}
	log.expire(events.Transfers, 9) // in the middle of the second checkpoint
	if text, findings, _, status := verified(t, log, withKey(), last(t, log)); status != statusOK {
		t.Errorf("after retention: status %d, %+v\n%s", status, findings, text)
	}
	if text, _, _, status := verified(t, newTape(t), withKey()); status != statusOK {
		t.Errorf("an empty log: status %d\n%s", status, text)
	}
}

// last is what a host remembers: the newest checkpoint.
func last(t *testing.T, log *tape) events.Checkpoint {
	t.Helper()
	o, err := newOpener(trust{secrets: withKey()})
	if err != nil {
		t.Fatal(err)
	}
	records := log.records[events.Checkpoints]
	return *o.open(records[len(records)-1]).event.Fact.(*events.Checkpoint)
}

// TestVerifyFindsWhatWasDone to a log, and names the first bad sequence.
func TestVerifyFindsWhatWasDone(t *testing.T) {
	at := func(b events.Bucket, seq uint64, do func(*events.Record) bool) func(events.Record) (events.Record, bool) {
		return func(r events.Record) (events.Record, bool) {
			if r.Bucket != b || r.Seq != seq {
				return r, true
			}
			r.Body = bytes.Clone(r.Body)
			return r, do(&r)
		}
	}
	flip := func(r *events.Record) bool { r.Body[len(r.Body)/2] ^= 1; return true }
	drop := func(*events.Record) bool { return false }
	for _, c := range []struct {
		name  string
		log   func(*tape) tampered
		first uint64
		codes []string
	}{
		{"a byte of a sealed fact", func(l *tape) tampered { return tampered{history: l, change: at(events.Transfers, 4, flip)} }, 4, []string{findSignature, findCheckpoint}},
		{"a byte behind the last checkpoint", func(l *tape) tampered { return tampered{history: l, change: at(events.Transfers, 21, flip)} }, 21, []string{findSignature}},
		{"one removed in the middle", func(l *tape) tampered { return tampered{history: l, change: at(events.Transfers, 8, drop)} }, 8, []string{findHole, findPrev, findCheckpoint}},
		{"the last two of a key", func(l *tape) tampered {
			return tampered{history: l, change: func(r events.Record) (events.Record, bool) {
				return r, r.Bucket != events.Transfers || r.Seq < 12 || r.Seq > 13
			}}
		}, 12, []string{findHole, findCheckpoint}},
		{"the whole of a key", func(l *tape) tampered {
			gone := l.records[events.Transfers][6].Key
			return tampered{history: l, change: func(r events.Record) (events.Record, bool) { return r, r.Key != gone }}
		}, 7, []string{findHole, findCheckpoint}},
		{"the end", func(l *tape) tampered {
			return tampered{history: l, ends: map[events.Bucket]uint64{events.Transfers: 15}}
		}, 16, []string{findLost}},
		{"another's signature", func(l *tape) tampered {
			return tampered{history: l, change: at(events.Transfers, 2, func(r *events.Record) bool {
				r.Header = map[string]string{events.HeaderType: r.Header[events.HeaderType], events.HeaderSig: "v1;kid=9b674547;00"}
				return true
			})}
		}, 2, []string{findSignature, findCheckpoint}},
		{"a checkpoint", func(l *tape) tampered { return tampered{history: l, change: at(events.Checkpoints, 2, drop)} }, 7, []string{findCheckpoint, findHole}},
		{"a byte of an operator's decision", func(l *tape) tampered { return tampered{history: l, change: at(events.Control, 1, flip)} }, 1, []string{findSignature}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, findings, end, status := verified(t, c.log(sealedTape(t)), withKey())
			var codes []string
			for _, f := range findings {
				if !slices.Contains(codes, f.Code) {
					codes = append(codes, f.Code)
				}
			}
			slices.Sort(codes)
			slices.Sort(c.codes)
			if status != statusInconsistent || end.First == nil || end.First.Seq != c.first || !slices.Equal(codes, c.codes) {
				t.Errorf("status %d, codes %v, want %v at %d:\n%s", status, codes, c.codes, c.first, text)
			}
		})
	}
}

// TestVerifyAgainstWhatHostsRemember: who can write checkpoints of his own cannot take back
// those that others have seen.
func TestVerifyAgainstWhatHostsRemember(t *testing.T) {
	log := sealedTape(t)
	newest := last(t, log)
	gone := tampered{history: log, ends: map[events.Bucket]uint64{events.Transfers: 13, events.Checkpoints: 2}}
	if _, findings, _, status := verified(t, gone, withKey()); status != statusOK {
		t.Errorf("nobody remembers: status %d, %+v", status, findings)
	}
	if _, findings, _, status := verified(t, gone, withKey(), newest); status != statusInconsistent || findings[0].Code != findLost || findings[0].Seq != 14 {
		t.Errorf("a lost end with its checkpoint: status %d, %+v", status, findings)
	}
	other := newest
	other.Hash = strings.Repeat("0", 64)
	if _, findings, _, status := verified(t, log, withKey(), other); status != statusInconsistent || findings[0].Code != findCheckpoint {
		t.Errorf("another log: status %d, %+v", status, findings)
	}
	file := filepath.Join(t.TempDir(), "checkpoint.json")
	raw, err := json.Marshal(newest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := readMemories([]string{file}); err != nil || !slices.Equal(got, []events.Checkpoint{newest}) {
		t.Errorf("read %+v, %v", got, err)
	}
	if _, err := readMemories([]string{file + ".none"}); err == nil {
		t.Error("a file that is not there was read")
	}
}

// TestVerifyKnowsWhichHolesAreRight: the oldest revisions of a busy key are dropped.
func TestVerifyKnowsWhichHolesAreRight(t *testing.T) {
	log := newTape(t)
	other := &journey{tape: log, name: "Other", player: events.OfflinePlayer("Other")}
	busy := &journey{tape: log, name: "Busy", player: events.OfflinePlayer("Busy")}
	other.joined("a")
	for range events.MaxKeyFacts + 3 {
		busy.joined("a")
	}
	rolled := tampered{history: log, change: func(r events.Record) (events.Record, bool) { return r, r.Seq < 2 || r.Seq > 4 }}
	if text, _, _, status := verified(t, rolled, withKey()); status != statusOK {
		t.Errorf("three dropped revisions: status %d\n%s", status, text)
	}
	cut := tampered{history: log, change: func(r events.Record) (events.Record, bool) { return r, r.Seq < 2 || r.Seq > 5 }}
	if text, findings, _, status := verified(t, cut, withKey()); status != statusInconsistent || findings[0].Code != findHole || findings[0].Seq != 2 {
		t.Errorf("one more was removed: status %d\n%s", status, text)
	}
}
