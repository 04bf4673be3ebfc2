package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
)

// exportOf writes a log into a file of the test.
func exportOf(t *testing.T, log history, buckets ...events.Bucket) string {
	t.Helper()
	if buckets == nil {
		buckets = exportBuckets
	}
	path := filepath.Join(t.TempDir(), "log.landfall")
	if _, _, err := exportTo(t.Context(), path, log, buckets); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAnExportIsReadLikeItsStore: whatever tail and replay say of a log, they say of its export.
func TestAnExportIsReadLikeItsStore(t *testing.T) {
	tape := wholeTape(t)
	tape.expire(events.Transfers, 4)
	path := exportOf(t, tape, allBuckets...)
	file, err := openExport(path)
	if err != nil {
		t.Fatal(err)
	}
	steve := events.OfflinePlayer("Steve").String()
	for _, args := range [][]string{
		{"tail"},
		{"tail", "--json", "--bucket", "all"},
		{"tail", "--player", "steve", "--limit", "3"},
		{"tail", "--player", steve, "--bucket", "sessions"},
		{"tail", "--after", "2", "--until", "9"},
		{"tail", "--since", "2026-01-31T12:00:40Z", "--until", "2026-01-31T12:01:16.255Z"},
		{"replay", "player", "steve", "--explain"},
		{"replay", "token", "r-019c0fba600070008000000000000010-2", "--json"},
		{"replay", "transfer", "019c0fba-6000-7000-8000-000000000010"},
	} {
		want, got := onTape(t, tape, withKey(), args...), onTape(t, file, withKey(), args...)
		if got != want {
			t.Errorf("%q: of the export\n%+v\nof the log\n%+v", args, got, want)
		}
	}
}

func TestAnExportSaysWhatItDoesNotHold(t *testing.T) {
	file, err := openExport(exportOf(t, wholeTape(t)))
	if err != nil {
		t.Fatal(err)
	}
	if o := onTape(t, file, withKey(), "tail", "--bucket", "fleet"); o.status != statusFailed || !strings.Contains(o.stderr, "fleet: this bucket was not exported") {
		t.Errorf("its heartbeats: %+v", o)
	}
	if o := onTape(t, file, withKey(), "tail", "--bucket", "all"); o.status != statusOK || !strings.Contains(o.stderr, "fleet: this bucket was not exported") {
		t.Errorf("all of it: %+v", o)
	}
}

// TestADamagedExportIsRefused at every length, and with every byte changed (some of them: each
// costs a reading), but for a bit that gzip pads with: then all of it is still there.
func TestADamagedExportIsRefused(t *testing.T) {
	tape, _ := tapeOf(t, "completed")
	path := exportOf(t, tape)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged")
	unpacked := func(data []byte) string {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return err.Error()
		}
		out, err := io.ReadAll(z)
		return fmt.Sprintf("%x %v", out, err)
	}
	content := unpacked(whole)
	refused := func(what string, data []byte) {
		t.Helper()
		if err := os.WriteFile(damaged, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if len(data) == len(whole) && unpacked(data) == content {
			return
		}
		if _, err := openExport(damaged); err == nil || !strings.Contains(err.Error(), damaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	step := max(len(whole)/97, 1)
	for n := 0; n < len(whole)-8; n += step { // the last eight bytes are gzip's own checksum
		refused("cut off", whole[:n])
	}
	for i := 16; i < len(whole)-8; i += step {
		data := bytes.Clone(whole)
		data[i] ^= 0x40
		refused("a changed byte", data)
	}
	refused("another file", []byte("network: {}\n"))
}

func TestExportOfAStore(t *testing.T) {
	t.Setenv(envSecret, encoded(realSecret))
	c := newCarrier(t, unused(t))
	story, _ := tapeOf(t, "completed")
	for _, r := range story.records[events.Transfers] {
		c.append(t, r)
	}
	path := filepath.Join(t.TempDir(), "log.landfall")
	o := typed(t, "export", path, "--store", c.cfg.Dir)
	if o.status != statusOK || !strings.Contains(o.stdout, "transfers    sequences 1 to 6\n") || !strings.Contains(o.stdout, "6 records in "+path) {
		t.Fatalf("export: %+v", o)
	}
	if again := typed(t, "export", path, "--store", c.cfg.Dir); again.status != statusFailed || !strings.Contains(again.stderr, "is there already") {
		t.Errorf("export over a file: %+v", again)
	}
	if again := typed(t, "export", path, "--store", c.cfg.Dir, "--force", "--json"); again.status != statusOK || !strings.Contains(again.stdout, `"records":6`) {
		t.Errorf("export with --force: %+v", again)
	}
	live, file := typed(t, "tail", "--store", c.cfg.Dir, "--json"), typed(t, "tail", "--from-file", path, "--json")
	if live.status != statusOK || file.stdout != live.stdout {
		t.Errorf("tail of the file %+v, of the store %+v", file, live)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the file: %v, %v", left, err)
	}
	for _, args := range [][]string{{"--follow"}, {"--store", c.cfg.Dir}} {
		if o := typed(t, slices.Concat([]string{"tail", "--from-file", path}, args)...); o.status != statusUsage || !strings.Contains(o.stderr, "give one") {
			t.Errorf("%q: %+v", args, o)
		}
	}
}
