package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// On a real disk: one byte flipped in a stored file, one message taken out, the last hundred
// lost. `landfall verify` finds each, and names the first bad sequence.
func TestVerifyFindsWhatWasDoneToTheDisk(t *testing.T) {
	dir, _ := filled(t, "10050") // one checkpoint seals the first 10,000
	for _, c := range []struct {
		name  string
		harm  func(t *testing.T, from, to string)
		first uint64
	}{
		{"one byte flipped", flipped, 5000},
		{"one message removed", func(t *testing.T, from, to string) { t.Helper(); copied(t, from, to, 7000, 0) }, 7000},
		{"the last 100 lost", func(t *testing.T, from, to string) { t.Helper(); copied(t, from, to, 0, 100) }, 9951},
	} {
		t.Run(c.name, func(t *testing.T) {
			harmed := filepath.Join(t.TempDir(), "harmed")
			c.harm(t, dir, harmed)
			o := typed(t, "verify", "--json", "--store", harmed)
			var end verifyEnd
			if err := json.Unmarshal([]byte(lastLine(o.stdout)), &end); err != nil {
				t.Fatalf("%v\n%s%s", err, o.stdout, o.stderr)
			}
			if o.status != statusInconsistent || end.First == nil || end.First.Bucket != events.Transfers || end.First.Seq != c.first {
				t.Errorf("status %d, want the first bad sequence %d:\n%s%s", o.status, c.first, o.stdout, o.stderr)
			}
		})
	}
}

// flipped copies a store, and changes one bit of the 5,000th fact in its file.
func flipped(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	var mark []byte
	read(t, from, func(st *reader) {
		for rec, err := range st.History(t.Context(), events.Transfers, streams.Range{After: 4999, UpTo: 5000}) {
			if err != nil {
				t.Fatal(err)
			}
			mark = []byte(rec.Header[events.HeaderSig])
		}
	})
	blocks, err := filepath.Glob(filepath.Join(to, "jetstream", "*", "streams", "KV_transfers", "msgs", "*.blk"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range blocks {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(raw, mark); i >= 0 {
			raw[i+len(mark)/2] ^= 1
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("the fact is in no file")
}

// copied makes a store out of another one, without one fact and without the last ones.
func copied(t *testing.T, from, to string, without, lost uint64) {
	t.Helper()
	server, err := embedded.Open(t.Context(), embedded.Config{Dir: to, Network: "demo", Creator: createdByDemo, Durability: streams.Lazy})
	if err != nil {
		t.Fatal(err)
	}
	st, err := streams.Connect(t.Context(), server.Connection())
	if err != nil {
		t.Fatal(err)
	}
	read(t, from, func(old *reader) {
		for _, b := range exportBuckets {
			state, err := old.Info(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			log := tampered{history: old}
			if b == events.Transfers {
				state.Last -= lost
				log.change = func(r events.Record) (events.Record, bool) { return r, r.Seq != without && r.Seq <= state.Last }
			}
			if err := st.Import(context.WithoutCancel(t.Context()), b, state, log.History(t.Context(), b, streams.Range{})); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err := st.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	secret, err := os.ReadFile(filepath.Join(from, demoSecretFile))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(to, demoSecretFile), string(secret))
}

// read opens a directory's store for a while.
func read(t *testing.T, dir string, use func(*reader)) {
	t.Helper()
	src, err := directory(dir)
	if err != nil {
		t.Fatal(err)
	}
	st, err := src.open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	use(st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}
