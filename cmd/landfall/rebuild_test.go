package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/projections/archive"
	"github.com/landfall/landfall/streams/streamtest"
)

// shop is a running store with the stories in it, and a directory for its archive.
type shop struct {
	*carrier
	db string
}

func newShop(t *testing.T) shop {
	t.Helper()
	t.Setenv(envSecret, encoded(realSecret))
	s := shop{newCarrier(t, unused(t)), filepath.Join(t.TempDir(), "archive")}
	for _, story := range stories {
		if story.name != "forged" {
			tape := newTape(t)
			story.tell(tape)
			s.shift(t, tape)
		}
	}
	return s
}

// shift plays a tape that begins anew behind what the store holds.
func (s shop) shift(t *testing.T, tape *tape) {
	t.Helper()
	state, err := s.store.Info(t.Context(), events.Transfers)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range tape.records[events.Transfers] {
		e, refusal := events.Open(streamtest.Keyring(), r)
		if refusal != nil {
			t.Fatal(refusal)
		}
		if e.Prev > 0 {
			e.Prev += state.Last
		}
		if f, ok := e.Fact.(*events.Reopened); ok {
			f.Claim += state.Last
		}
		e.ID = streamtest.NewID[events.EventID]()
		r2 := streamtest.Seal(t, e.Envelope, e.Fact)
		s.append(t, events.Record{Bucket: r.Bucket, Key: r.Key, Header: r2.Header, Body: r2.Body})
	}
}

func (s shop) rebuild(t *testing.T, folding archive.Folding, args ...string) outcome {
	t.Helper()
	c := rebuildWith(folding)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(append(args, "--db", s.db, "--store", s.cfg.Dir))
	var stdout, stderr bytes.Buffer
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	err := c.ExecuteContext(t.Context())
	if text := oneLine(err); text != "" {
		fmt.Fprintln(&stderr, "landfall:", text)
	}
	return outcome{stdout.String(), stderr.String(), statusOf(err)}
}

// buggy is the next version, which takes failures for arrivals.
func buggy() archive.Folding {
	return archive.Folding{Version: archive.Current.Version + 1, Fold: func(x projections.Transfer, last *archive.Attempt, e events.Event) archive.Rows {
		rows := archive.Current.Fold(x, last, e)
		if rows.Transfer.Phase == projections.Failed {
			rows.Transfer.Phase = projections.Completed
		}
		return rows
	}}
}

var changing = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|-[0-9a-f]{8}-|\d+(\.\d+)? s\b|\d+ a second|\d+ facts a second|"(ms|perSecond|etaMs|bytes|seq)":\d+|about \d+ bytes|[0-9a-f]{64}|process \d+|by \w+[,:]|by \w+\b|\d+\.\d %`)

// TestAnUpgradeWithABug: the shadow differs, diff shows which keys, and switch, rollback and
// switch let one or the other answer; each stands in the log.
func TestAnUpgradeWithABug(t *testing.T) {
	s := newShop(t)
	var got transcript
	step := func(folding archive.Folding, status int, args ...string) outcome {
		t.Helper()
		o := s.rebuild(t, folding, args...)
		if o.status != status {
			t.Fatalf("%v: want status %d, got %+v", args, status, o)
		}
		got.add("rebuild "+strings.Join(args, " "), changing.ReplaceAllString(o.stdout, "…"), changing.ReplaceAllString(strings.ReplaceAll(o.stderr, s.db, "DIR"), "…"), o.status)
		return o
	}
	arrived := func(want string) {
		t.Helper()
		if o := typed(t, "query", "sql", "SELECT count(*) AS n FROM transfers WHERE phase = 'COMPLETED'", "--db", s.db, "--store", s.cfg.Dir, "--json"); !strings.HasPrefix(o.stdout, `{"n":`+want+`}`) {
			t.Errorf("want %s arrivals, got %+v", want, o)
		}
	}
	now := archive.Current
	step(now, statusFailed, "status")
	step(now, statusOK, "plan")
	step(now, statusOK, "run")
	arrived("3")
	step(now, statusTrouble, "diff")
	step(now, statusOK, "run") // once more, by the same version
	step(now, statusOK, "diff")
	step(buggy(), statusOK, "plan", "--json")
	step(buggy(), statusOK, "run", "--json")
	step(buggy(), statusDifferent, "diff", "--keys", "2")
	step(buggy(), statusDifferent, "diff", "--json")
	step(buggy(), statusOK, "status")
	step(buggy(), statusOK, "switch", "--who", "ada", "--why", "version 2")
	arrived("7")
	step(buggy(), statusOK, "rollback", "--who", "ada", "--why", "it counts failures")
	arrived("3")
	step(buggy(), statusOK, "switch", "--who", "ada", "--json")
	arrived("7")
	step(buggy(), statusFailed, "switch")
	got.matches(t, "rebuild")
	o := typed(t, "tail", "--bucket", "control", "--store", s.cfg.Dir)
	if n := strings.Count(o.stdout, "control.rebuild"); n != 3 || !strings.Contains(o.stdout, "it counts failures") {
		t.Errorf("the log of decisions: %+v", o)
	}
}

// TestARebuildGoesOnWhereItWas: ended half-way, it ends with the rows of one that was not.
func TestARebuildGoesOnWhereItWas(t *testing.T) {
	s := newShop(t)
	if o := s.rebuild(t, archive.Current, "run"); o.status != statusOK {
		t.Fatal(o)
	}
	state, err := s.store.Info(t.Context(), events.Transfers)
	if err != nil {
		t.Fatal(err)
	}
	dir := archive.Directory(s.db)
	p, err := dir.Pointer()
	if err != nil {
		t.Fatal(err)
	}
	if p.Shadow, err = dir.Make(t.Context(), archive.Identity{Network: state.Network, Incarnation: state.Incarnation, Fold: archive.Current.Version}); err != nil {
		t.Fatal(err)
	}
	if err := dir.Point(p); err != nil {
		t.Fatal(err)
	}
	key, err := events.NewKey(realSecret)
	if err != nil {
		t.Fatal(err)
	}
	f, err := archive.Open(t.Context(), dir.File(p.Shadow), "killed")
	if err != nil {
		t.Fatal(err)
	}
	if err := archive.NewProjector(f, archive.Config{Log: s.store, Keys: events.NewKeyring(key), UpTo: state.Last / 2}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	o := s.rebuild(t, archive.Current, "run", "--json")
	if rest := fmt.Sprintf(`"facts":%d,"seq":%d`, state.Last-state.Last/2, state.Last); o.status != statusOK || !strings.Contains(o.stdout, rest) {
		t.Errorf("want %s, got %+v", rest, o)
	}
	if o := s.rebuild(t, archive.Current, "diff"); o.status != statusOK {
		t.Errorf("%+v", o)
	}
}

// TestTheSecondRebuildNamesTheHolder of the lease.
func TestTheSecondRebuildNamesTheHolder(t *testing.T) {
	s := newShop(t)
	if o := s.rebuild(t, archive.Current, "run"); o.status != statusOK {
		t.Fatal(o)
	}
	p, err := archive.Directory(s.db).Pointer()
	if err != nil {
		t.Fatal(err)
	}
	l, err := archive.Acquire(t.Context(), s.store, archive.LeaseKey(p.View, p.Live), "ada, process 7", newID)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	held := make(chan error, 1)
	go func() { held <- l.Hold(ctx) }()
	if o := s.rebuild(t, archive.Current, "run", "--live"); o.status != statusFailed || !strings.Contains(o.stderr, "is being written by ada, process 7") {
		t.Errorf("%+v", o)
	}
	end()
	if err := <-held; err != nil {
		t.Error(err)
	}
	if o := s.rebuild(t, archive.Current, "run", "--live"); o.status != statusOK {
		t.Errorf("after it was given back: %+v", o)
	}
	var other *archive.HeldError
	if errors.As(err, &other) {
		t.Error(err)
	}
}

// TestCase112_ABadRecordStopsARebuildLoudly: an unknown kind of fact halts it with sequence, kind and
// cause within the run; it is left out when an operator says so, which stands in the log.
func TestCase112_ABadRecordStopsARebuildLoudly(t *testing.T) {
	s := newShop(t)
	key, err := events.NewKey(realSecret)
	if err != nil {
		t.Fatal(err)
	}
	story, j := tapeOf(t, "open")
	m := story.seal(streamtest.Source(events.SourceEdge, "e1"), j.key(), 0, &events.Requested{Trigger: events.TriggerCommand, Name: "Late"})
	id := streamtest.NewID[events.TransferID]()
	m.Key = events.TransferKey(events.OfflinePlayer("Late"), id)
	m.Header[events.HeaderType], m.Header[events.HeaderKey], m.Header[events.HeaderID] = "landfall.transfer.teleported.v9", m.Key, streamtest.NewID[events.EventID]().String()
	m.Header[events.HeaderCorrelation] = id.String()
	m.Header[events.HeaderSig] = events.NewKeyring(key).Sign(m.Bucket.Subject(m.Key), m.Header, m.Body)
	seq, err := s.store.Append(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	o := s.rebuild(t, archive.Current, "run")
	if want := fmt.Sprintf("halted at sequence %d of transfers (landfall.transfer.teleported.v9, key %s", seq, m.Key); o.status != statusFailed || !strings.Contains(o.stderr, want) || !strings.Contains(o.stderr, "UNKNOWN_TYPE") {
		t.Errorf("after %s, want %q, got %+v", time.Since(began), want, o)
	}
	if o := s.rebuild(t, archive.Current, "status"); !strings.Contains(o.stdout, fmt.Sprintf("halted at sequence %d", seq)) {
		t.Errorf("%+v", o)
	}
	if o := s.rebuild(t, archive.Current, "run", "--quarantine", fmt.Sprint(seq)); o.status != statusOK {
		t.Fatalf("%+v", o)
	}
	if o := typed(t, "tail", "--bucket", "audit", "--store", s.cfg.Dir); !strings.Contains(o.stdout, "left out of archive.local") {
		t.Errorf("the audit: %+v", o)
	}
	if o := s.rebuild(t, archive.Current, "status"); strings.Contains(o.stdout, "halted") {
		t.Errorf("%+v", o)
	}
}

// TestRebuildWithoutAStore says what is missing.
func TestRebuildWithoutAStore(t *testing.T) {
	t.Setenv(envSecret, encoded(realSecret))
	for _, args := range [][]string{{"plan"}, {"run"}, {"switch"}} {
		dir := t.TempDir()
		o := typed(t, append([]string{"rebuild"}, append(args, "--db", dir, "--store", dir+"/none")...)...)
		if o.status != statusFailed || o.stderr == "" || o.stdout != "" {
			t.Errorf("%v: %+v", args, o)
		}
	}
}

// TestRebuildOfAnEmptyLog is a normal result.
func TestRebuildOfAnEmptyLog(t *testing.T) {
	t.Setenv(envSecret, encoded(realSecret))
	s := shop{newCarrier(t, unused(t)), filepath.Join(t.TempDir(), "archive")}
	for _, args := range [][]string{{"plan"}, {"run"}, {"run"}, {"diff"}, {"switch"}, {"status"}} {
		if o := s.rebuild(t, archive.Current, args...); o.status != statusOK {
			t.Errorf("%v: %+v", args, o)
		}
	}
	if o := typed(t, "query", "failures", "--db", s.db, "--store", s.cfg.Dir); o.status != statusOK || !strings.Contains(o.stderr, "as far as the log") {
		t.Errorf("%+v", o)
	}
}

func TestProgressLine(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	for want, p := range map[string]archive.Progress{
		"transfers 412000 of 1000000 (41.2 %), 49000 facts/s, 12.5 s behind the log, 12 s to go": {Seq: 412_000, Target: 1_000_000, Stored: at, Clock: at.Add(12500 * time.Millisecond)},
		"transfers 10 of 10 (100.0 %), 49000 facts/s, making the indexes":                        {Seq: 10, Target: 10, Stored: at, Clock: at},
		"transfers 0 of 0 (100.0 %), 49000 facts/s":                                              {Live: true},
	} {
		if got := progressLine(p, 49_000); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestRebuildHelp(t *testing.T) {
	var got transcript
	for _, args := range [][]string{{"rebuild", "--help"}, {"rebuild", "run", "--help"}, {"rebuild", "switch", "--help"}, {"rebuild", "sideways"}, {"rebuild", "run", "--quarantine", "0"}} {
		o := typed(t, args...)
		got.add(strings.Join(args, " "), o.stdout, o.stderr, o.status)
	}
	got.matches(t, "rebuild-help")
}
