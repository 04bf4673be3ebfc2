package main

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
)

func TestReplayTellsEachStory(t *testing.T) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			tape, j := tapeOf(t, s.name)
			var got transcript
			for _, args := range [][]string{
				{"replay", "transfer", j.id.String()},
				{"replay", "transfer", j.id.String(), "--explain", "--sessions=false"},
				{"replay", "transfer", j.id.String(), "--json"},
			} {
				o := onTape(t, tape, withKey(), args...)
				got.add(strings.Join(args, " "), o.stdout, o.stderr, o.status)
			}
			got.matches(t, "replay-"+s.name)
		})
	}
}

func TestReplayPlayerListsTheTransfersAndTellsTheNewest(t *testing.T) {
	tape, _ := tapeOf(t, "completed")
	j := tape.begin("Steve", 12, events.Wish{Region: "nowhere"})
	j.failed(events.RegionMissing)
	var got transcript
	for _, args := range [][]string{
		{"replay", "player", "sTEVE", "--sessions=false"},
		{"replay", "player", events.OfflinePlayer("Steve").String(), "--sessions=false", "--json"},
		{"replay", "player", "Nobody"},
		{"replay", "player", events.OfflinePlayer("Nobody").String()},
	} {
		o := onTape(t, tape, withKey(), args...)
		got.add(strings.Join(args, " "), o.stdout, o.stderr, o.status)
	}
	got.matches(t, "replay-player")
}

// What went wrong alone, the transfer's own facts alone, and each record in full.
func TestReplayViews(t *testing.T) {
	tape, j := tapeOf(t, "refused")
	fine := tape.begin("Stuck", 12, events.Wish{Region: "nowhere"})
	fine.fact(&events.Superseded{By: j.id})
	var got transcript
	for _, args := range [][]string{
		{"replay", "transfer", j.id.String(), "--only", "failures"},
		{"replay", "transfer", j.id.String(), "--only", "failures", "--json"},
		{"replay", "player", "Stuck", "--only", "failures", "--view", "compact"},
		{"replay", "transfer", j.id.String(), "--view", "compact", "--json"},
		{"replay", "transfer", fine.id.String(), "--view", "raw"},
		{"replay", "transfer", fine.id.String(), "--view", "raw", "--json"},
		{"replay", "transfer", fine.id.String(), "--only", "failures"},
		{"replay", "transfer", fine.id.String(), "--view", "wide"},
		{"replay", "transfer", fine.id.String(), "--only", "success"},
		{"replay", "transfer", fine.id.String(), "--view", "compact", "--explain"},
	} {
		o := onTape(t, tape, withKey(), args...)
		got.add(strings.Join(args, " "), o.stdout, o.stderr, o.status)
	}
	got.matches(t, "replay-views")

	tape, _ = tapeOf(t, "completed")
	o := onTape(t, tape, withKey(), "replay", "player", "Steve", "--only", "failures")
	if o.status != statusOK || o.stdout != "" || !strings.Contains(o.stderr, "nothing went wrong in 1 transfer") {
		t.Errorf("of a player with whom all went well: %+v", o)
	}
}

func TestReplayToken(t *testing.T) {
	tape, j := tapeOf(t, "refused")
	for _, id := range []string{j.token().String(), j.token().Label(), events.Token{Transfer: j.id, Attempt: 1}.Label()} {
		o := onTape(t, tape, withKey(), "replay", "token", id)
		if o.status != statusOK || !strings.Contains(o.stdout, "end: FAILED MOVE_REFUSED") || !strings.Contains(o.stderr, "scanned the headers of 1 fact") {
			t.Errorf("token %s: %+v", id, o)
		}
	}
	o := onTape(t, tape, withKey(), "replay", "token", events.Token{Transfer: j.id, Attempt: 3}.String())
	if o.status != statusFailed || !strings.Contains(o.stderr, "the transfer has 2 tokens") {
		t.Errorf("a token that never was: %+v", o)
	}
}

func TestReplayWithoutAKeySaysSo(t *testing.T) {
	tape, j := tapeOf(t, "completed")
	for _, secrets := range [][][]byte{nil, {[]byte("another secret of thirty-two byte")}} {
		o := onTape(t, tape, secrets, "replay", "transfer", j.id.String())
		if o.status != statusOK || !strings.Contains(o.stdout, "signatures not checked: no key") || !strings.Contains(o.stdout, "end: COMPLETED") {
			t.Errorf("%+v", o)
		}
	}
}

func TestReplayAfterRetention(t *testing.T) {
	tape, j := tapeOf(t, "not-arrived")
	var got transcript
	for _, first := range []uint64{2, 5, 6} {
		tape.expire(events.Transfers, first)
		args := []string{"replay", "transfer", j.id.String()}
		o := onTape(t, tape, withKey(), args...)
		if o.status != statusIncomplete {
			t.Errorf("first sequence %d: status %d, want %d", first, o.status, statusIncomplete)
		}
		got.add(strings.Join(args, " "), o.stdout, o.stderr, o.status)
	}
	got.matches(t, "replay-after-retention")
}

func TestReplayOfWhatNeverWas(t *testing.T) {
	tape := wholeTape(t)
	o := onTape(t, tape, withKey(), "replay", "transfer", "019c0fba-7000-7000-8000-00000000ffff")
	if o.status != statusFailed || !strings.Contains(o.stderr, "not in this store (scanned all") {
		t.Errorf("%+v", o)
	}
}

// TestGarbageIdsAreRefusedFirst: no store is opened for what cannot be an id.
func TestGarbageIdsAreRefusedFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ verb, arg, want string }{
		{"token", "r-123-1", `parse token "r-123-1"`},
		{"token", "019c0fba-6000-7000-8000-000000000001", "landfall replay transfer ID"},
		{"token", "019c0fba-6000-7000-8000-000000000001-0", "parse token"},
		{"token", "019c0fba-6000-7000-8000-000000000001-01", "parse token"},
		{"token", "$KV.transfers.>", "parse token"},
		{"transfer", "42", `parse id "42": want a UUID`},
		{"transfer", "r-019c0fba600070008000000000000001-1", "want a UUID"},
		{"transfer", "", "want a UUID"},
		{"player", "", "want a name"},
		{"player", strings.Repeat("x", 65), "at most 64 characters"},
		{"player", "a\x1b[31m", "want a name"},
	} {
		o := typed(t, "replay", c.verb, c.arg)
		if o.status != statusUsage || !strings.Contains(o.stderr, c.want) || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s %q: %+v", c.verb, c.arg, o)
		}
	}
}

// TestReplayFoldsAsDispatchersDo: the phase behind each fact is the fold's, so a story that
// completes must pass through every phase.
func TestReplayFoldsAsDispatchersDo(t *testing.T) {
	tape, j := tapeOf(t, "completed")
	o := onTape(t, tape, withKey(), "replay", "transfer", j.id.String(), "--json")
	var phases []string
	for _, row := range jsonLines(t, o.stdout) {
		if row["kind"] == stepFact {
			phases = append(phases, row["phase"].(string))
		}
	}
	if got := strings.Join(phases, " "); got != "REQUESTED PENDING CLAIMED CLAIMED CONSUMED COMPLETED" {
		t.Errorf("phases: %s", got)
	}
}

func jsonLines(t *testing.T, text string) (out []map[string]any) {
	t.Helper()
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		var row map[string]any
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		out = append(out, row)
	}
	return out
}
