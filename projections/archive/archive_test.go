package archive

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

// identity is that of a file of a log that was never made again.
func identity(fold int) Identity {
	return Identity{Network: network, Incarnation: "memory-0-1", Fold: fold}
}

func fresh(t testing.TB, f Folding) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "archive.db")
	if err := Create(t.Context(), path, identity(f.Version)); err != nil {
		t.Fatal(err)
	}
	return path
}

// project runs a projection of a file to its end.
func project(t testing.TB, path string, log *streamtest.Memory, cfg Config) error {
	t.Helper()
	f, err := Open(t.Context(), path, "test")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Keys = streamtest.Keyring(); cfg.Log == nil {
		cfg.Log = log.Client("archive")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = NewProjector(f, cfg).Run(ctx)
	if ctx.Err() != nil {
		t.Fatal("the projection did not end")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return err
}

func digest(t testing.TB, path string) string {
	t.Helper()
	r := reader(t, path)
	d, err := r.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func reader(t testing.TB, path string) *Reader {
	t.Helper()
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// ask gives the first column of the first row.
func ask(t testing.TB, path, sql string) any {
	t.Helper()
	var got any
	_, err := reader(t, path).Ask(t.Context(), Question{SQL: sql, Rows: 1, Time: time.Minute}, func([]string) error { return nil }, func(row []any) error {
		got = row[0]
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return got
}

// TestAnInterruptedProjectionGoesOn: cut wherever it may be, and as often as it may be, the rows
// are those of one that nobody interrupted.
func TestAnInterruptedProjectionGoesOn(t *testing.T) {
	for seed := range uint64(6) {
		c := newChronicle(t, seed)
		c.run(1500)
		whole := fresh(t, Current)
		if err := project(t, whole, c.log, Config{Once: true}); err != nil {
			t.Fatal(err)
		}
		want, cut := digest(t, whole), fresh(t, Current)
		for at := uint64(1); at < 1500; at += 1 + c.rnd.Uint64N(400) {
			if err := project(t, cut, c.log, Config{UpTo: at}); err != nil {
				t.Fatal(err)
			}
		}
		if err := project(t, cut, c.log, Config{Once: true}); err != nil {
			t.Fatal(err)
		}
		if got := digest(t, cut); got != want {
			t.Fatalf("seed %d: %s, want %s", seed, got, want)
		}
		if n := ask(t, whole, "SELECT count(*) FROM transfers WHERE phase = 'COMPLETED'").(int64); n < 20 {
			t.Errorf("only %d completed", n)
		}
	}
}

// TestAHalt: a record that cannot be judged stops the folding, which says where; it is left out
// when an operator says so, and that stands in the file.
func TestAHaltNamesTheRecord(t *testing.T) {
	c := newChronicle(t, 1)
	c.run(50)
	m := c.audit()
	m.Header[events.HeaderType] = "landfall.transfer.vanished.v1"
	who, _ := player(1)
	key := events.TransferKey(who, streamtest.NewID[events.TransferID]())
	m.Header[events.HeaderKey] = key
	m.Header[events.HeaderSig] = streamtest.Keyring().Sign(events.Transfers.Subject(key), m.Header, m.Body)
	bad := c.log.Inject(events.Transfers, key, m.Header, m.Body)
	c.guard[who] = bad
	c.run(50)
	path := fresh(t, Current)
	var h *Halt
	if err := project(t, path, c.log, Config{Once: true}); !errors.As(err, &h) || h.Seq != bad || h.Code != events.UnknownType {
		t.Fatalf("got %v", err)
	}
	r := reader(t, path)
	if r.Halted == nil || r.Halted.Seq != bad || r.Positions[events.Transfers].Seq != bad-1 {
		t.Fatalf("%+v", r.About)
	}
	told := 0
	cfg := Config{Once: true, Quarantine: map[Place]bool{h.Place: true}, Quarantined: func(context.Context, *Halt) error { told++; return nil }}
	if err := project(t, path, c.log, cfg); err != nil || told != 1 {
		t.Fatalf("%v, told %d times", err, told)
	}
	if r := reader(t, path); r.Halted != nil {
		t.Errorf("still halted: %+v", r.Halted)
	}
	if n := ask(t, path, "SELECT seq FROM quarantined"); n != int64(bad) {
		t.Errorf("quarantined %v, want %d", n, bad)
	}
}

// TestGarbageIsWrittenDown: what is no fact stands among the refusals.
func TestGarbageIsWrittenDown(t *testing.T) {
	c := newChronicle(t, 3)
	c.run(600)
	path := fresh(t, Current)
	if err := project(t, path, c.log, Config{Once: true}); err != nil {
		t.Fatal(err)
	}
	for code, least := range map[events.Code]int64{events.Stray: 3, events.Impossible: 3, events.WrongPlayer: 3} {
		if n := ask(t, path, "SELECT count(*) FROM refusals WHERE code = '"+string(code)+"'").(int64); n < least {
			t.Errorf("%d of %s, want %d or more", n, code, least)
		}
	}
}

// TestWhatTheLogDroppedIsSaid: transfers whose end was never read are UNKNOWN, and those that
// begin behind the gap are whole.
func TestWhatTheLogDroppedIsSaid(t *testing.T) {
	c := newChronicle(t, 4)
	c.run(600)
	path := fresh(t, Current)
	if err := project(t, path, c.log, Config{UpTo: 200}); err != nil {
		t.Fatal(err)
	}
	under := ask(t, path, "SELECT count(*) FROM transfers WHERE ended_at IS NULL").(int64)
	c.log.Expire(events.Transfers, 300)
	if err := project(t, path, c.log, Config{Once: true}); err != nil {
		t.Fatal(err)
	}
	if n := ask(t, path, "SELECT count(*) FROM transfers WHERE phase = 'UNKNOWN'"); n != under || under == 0 {
		t.Errorf("%v unknown, want %d", n, under)
	}
	if n := ask(t, path, "SELECT count(*) FROM transfers WHERE place > 300 AND phase = 'COMPLETED'").(int64); n == 0 {
		t.Error("nothing was completed behind the gap")
	}
	r := reader(t, path)
	if len(r.Gaps) != 1 || r.Gaps[0] != (Gap{events.Transfers, 201, 300}) {
		t.Errorf("gaps %v", r.Gaps)
	}
}

// TestAnotherLogIsNotWritten: a log that was made again, or lost its end, is not the one that
// the file was made from.
func TestAnotherLogIsNotWritten(t *testing.T) {
	for name, change := range map[string]func(*chronicle){
		"made again": func(c *chronicle) { c.log.Recreate(events.Transfers) },
		"lost its end": func(c *chronicle) {
			c.log.Truncate(events.Transfers, 50)
			c.run(100)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChronicle(t, 5)
			c.run(100)
			path := fresh(t, Current)
			if err := project(t, path, c.log, Config{Once: true}); err != nil {
				t.Fatal(err)
			}
			const what = "SELECT count(*) || ' ' || max(last_seq) || ' ' || sum(facts) FROM transfers"
			want := ask(t, path, what)
			change(c)
			if err := project(t, path, c.log, Config{Once: true}); !errors.Is(err, ErrForked) {
				t.Errorf("got %v", err)
			}
			if got := ask(t, path, what); got != want {
				t.Errorf("it was written to: %v, was %v", got, want)
			}
		})
	}
}

// TestTheLastWriterIsTheOnlyOne: who has been replaced writes nothing any more.
func TestTheLastWriterIsTheOnlyOne(t *testing.T) {
	c := newChronicle(t, 6)
	c.run(50)
	path := fresh(t, Current)
	f, err := Open(t.Context(), path, "first")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := NewProjector(f, Config{Log: c.log.Client("a"), Keys: streamtest.Keyring()})
	ended := make(chan error, 1)
	go func() { ended <- p.Run(t.Context()) }()
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, err := Open(t.Context(), path, "second")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	c.run(50)
	if err := <-ended; !errors.Is(err, ErrFenced) {
		t.Errorf("got %v", err)
	}
}

// TestAPanickingFoldNamesTheRecord: it stops the projection, and not the process.
func TestAPanickingFoldNamesTheRecord(t *testing.T) {
	c := newChronicle(t, 7)
	c.run(60)
	broken := Folding{Version: 2, Fold: func(x projections.Transfer, last *Attempt, e events.Event) Rows {
		if e.Seq >= 30 {
			panic("out of range")
		}
		return fold(x, last, e)
	}}
	path := fresh(t, broken)
	var h *Halt
	if err := project(t, path, c.log, Config{Once: true, Folding: broken}); !errors.As(err, &h) || h.Seq < 30 || h.Seq > 40 {
		t.Fatalf("got %v", err)
	}
	if err := project(t, path, c.log, Config{Once: true}); err == nil {
		t.Error("another version wrote to the file")
	}
}
