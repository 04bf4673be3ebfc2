package main

import (
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
)

func TestTailShowsTheLog(t *testing.T) {
	steve := events.OfflinePlayer("Steve").String()
	for _, c := range []struct {
		name string
		args []string
	}{
		{"all", nil},
		{"json", []string{"--json", "--limit", "12"}},
		{"buckets", []string{"--bucket", "all", "--since", "2026-01-31T12:00:40Z"}},
		{"player", []string{"--player", "steve"}},
		{"player-sessions", []string{"--player", steve, "--bucket", "sessions", "--json"}},
		{"token", []string{"--token", "r-019c0fba600070008000000000000010-2"}},
		{"type", []string{"--type", "failed", "--type", "landfall.transfer.cancelled.v1"}},
		{"outcome", []string{"--outcome", "failed", "--outcome", "SUPERSEDED"}},
		{"code", []string{"--code", "NO_CANDIDATE", "--code", "ttl_passed"}},
		{"server", []string{"--server", "e2"}},
		{"limit", []string{"--after", "3", "--limit", "2"}},
		{"until", []string{"--since", "4", "--until", "6"}},
		{"audit", []string{"--bucket", "audit", "--player", steve}},
		{"nothing", []string{"--server", "nobody"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"tail"}, c.args...)
			o := onTape(t, wholeTape(t), withKey(), args...)
			if o.status != statusOK {
				t.Errorf("status %d: %s", o.status, o.stderr)
			}
			var got transcript
			got.add(strings.Join(args, " "), o.stdout, o.stderr, o.status)
			got.matches(t, "tail-"+c.name)
		})
	}
}

// TestTailSaysWhatRetentionTook covers gaps: asked for more than there is, at both ends.
func TestTailSaysWhatRetentionTook(t *testing.T) {
	tape, _ := tapeOf(t, "completed")
	tape.expire(events.Transfers, 4)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--after", "0"}, "transfers: 3 messages gone (retention): asked for sequence 1, the first held is 4"},
		{[]string{"--after", "2"}, "transfers: 1 message gone (retention): asked for sequence 3, the first held is 4"},
		{[]string{"--since", "99"}, "transfers ends at sequence 6, 99 is not there yet"},
		{nil, "transfers: scanned 3 of 3, last sequence 6; continue with --after 6"},
		{[]string{"--after", "6"}, "scanned 0 of 3, last sequence 6"},
	} {
		o := onTape(t, tape, withKey(), append([]string{"tail"}, c.args...)...)
		if o.status != statusOK || !strings.Contains(o.stderr, c.want) {
			t.Errorf("%q: want %q, got %+v", c.args, c.want, o)
		}
	}
	if o := onTape(t, tape, withKey(), "tail", "--after", "3"); strings.Contains(o.stderr, "gone") {
		t.Errorf("nothing is missing after 3: %s", o.stderr)
	}
}

func TestTailContinuesWithoutGapOrRepeat(t *testing.T) {
	tape := wholeTape(t)
	whole := onTape(t, tape, withKey(), "tail", "--json").stdout
	var parts strings.Builder
	for after, rounds := "0", 0; ; rounds++ {
		o := onTape(t, tape, withKey(), "tail", "--json", "--limit", "7", "--after", after)
		parts.WriteString(o.stdout)
		_, rest, ok := strings.Cut(o.stderr, "continue with --after ")
		if !ok || rounds > 100 {
			t.Fatalf("no way on: %s", o.stderr)
		}
		next, _, _ := strings.Cut(rest, "\n")
		if next == after {
			break
		}
		after = next
	}
	if parts.String() != whole {
		t.Errorf("read in parts:\n%s\nat once:\n%s", parts.String(), whole)
	}
}

func TestTailOfAnEmptyLog(t *testing.T) {
	o := onTape(t, newTape(t), nil, "tail", "--json", "--bucket", "all")
	if o.status != statusOK || o.stdout != "" || !strings.Contains(o.stderr, "transfers: scanned 0 of 0, last sequence 0") {
		t.Errorf("%+v", o)
	}
}

func TestTailWithoutAKeySaysSoInEachRow(t *testing.T) {
	tape := wholeTape(t)
	for _, row := range jsonLines(t, onTape(t, tape, nil, "tail", "--json").stdout) {
		stray := row["type"] == ""
		if row["verified"] != string(noKey) && !stray {
			t.Errorf("sequence %v: verified is %v", row["seq"], row["verified"])
		}
	}
	text := onTape(t, tape, nil, "tail").stdout
	if !strings.Contains(text, "[no key]") || strings.Contains(text, "\x1b") {
		t.Errorf("got %s", text)
	}
}

// TestEveryRowHasEveryField: a script may rely on them, whatever the row.
func TestEveryRowHasEveryField(t *testing.T) {
	for _, row := range jsonLines(t, onTape(t, wholeTape(t), withKey(), "tail", "--json", "--bucket", "all").stdout) {
		for _, field := range []string{"seq", "bucket", "key", "stored", "time", "schema", "type", "source", "id", "correlation", "prev", "verified", "fact"} {
			if _, ok := row[field]; !ok {
				t.Errorf("sequence %v of %v has no %s", row["seq"], row["bucket"], field)
			}
		}
	}
}

func TestTailRefusesWhatItCannotMean(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--since", "yesterday"}, "want a length (10m), a sequence (1234) or a time"},
		{[]string{"--since", "0"}, "sequences begin at 1"},
		{[]string{"--until", "-5m"}, "want a length before now"},
		{[]string{"--since", "5", "--after", "4"}, "give one"},
		{[]string{"--follow", "--until", "5"}, "give one"},
		{[]string{"--bucket", "all", "--after", "5"}, "name one with --bucket"},
		{[]string{"--bucket", "leases"}, "want one of transfers, sessions, control, audit, checkpoints, fleet, limits, routes or all"},
		{[]string{"--type", "moved"}, `--type "moved": want one of requested, reserved`},
		{[]string{"--outcome", "lost"}, `--outcome "lost": want one of completed, failed`},
		{[]string{"--code", "no-candidate"}, "want a reason code"},
		{[]string{"--pulse", "-1s"}, "--pulse -1s"},
		{[]string{"--token", "r-1-1"}, "--token: parse token"},
		{[]string{"--server", "a b"}, "--server: host id"},
		{[]string{"--limit", "-1"}, "--limit -1"},
		{[]string{"--player", "a/b"}, "want a name"},
	} {
		o := onTape(t, newTape(t), nil, append([]string{"tail"}, c.args...)...)
		if o.status != statusUsage || !strings.Contains(o.stderr, c.want) || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%q: want %q, got %+v", c.args, c.want, o)
		}
	}
	if o := onTape(t, newTape(t), nil, "tail", "--player", "Nobody"); o.status != statusFailed || !strings.Contains(o.stderr, "nobody of that name") {
		t.Errorf("an unknown player: %+v", o)
	}
}
