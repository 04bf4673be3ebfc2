package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
)

func fillEnd(t *testing.T, stdout string) fillSummary {
	t.Helper()
	var s fillSummary
	if err := json.Unmarshal([]byte(lastLine(stdout)), &s); err != nil {
		t.Fatalf("the last line is no summary: %v\n%s", err, lastLine(stdout))
	}
	return s
}

// A filled log is one that every verb reads, and that nothing is wrong with.
func TestDemoFillsALog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "busy")
	status, out, errs := landfall(t.Context(), "demo", "--fill", "12000", "--dir", dir, "--json")
	s := fillEnd(t, out)
	if status != statusOK || s.Facts != 12_000 || s.Players != 240 || s.Completed == 0 || s.Open == 0 || s.Completed+s.Ended+s.Open != s.Transfers {
		t.Fatalf("status %d, %+v\n%s", status, s, errs)
	}
	status, out, errs = landfall(t.Context(), "verify", "--store", dir, "--json")
	var end verifyEnd
	if err := json.Unmarshal([]byte(lastLine(out)), &end); err != nil || status != statusOK || !end.Verified || end.Checkpoints != 1 || end.SealedTo != sealEvery {
		t.Errorf("verify: status %d, %v\n%s%s", status, err, out, errs)
	}
	if end.Buckets[0].Bucket != events.Transfers || end.Buckets[0].Records != 12_000 {
		t.Errorf("verify read %+v", end.Buckets)
	}
	status, out, errs = landfall(t.Context(), "replay", "token", s.Example.String(), "--store", dir)
	if status != statusOK || !strings.Contains(out, "completed") {
		t.Errorf("replay: status %d\n%s%s", status, out, errs)
	}
	if status, _, errs = landfall(t.Context(), "demo", "--fill", "10", "--dir", dir); status != statusFailed || !strings.Contains(errs, "holds 12000 facts already: --fill begins with an empty log, name another --dir") {
		t.Errorf("filled again: status %d, %s", status, errs)
	}
}

// The store of a network.yml is filled in the names of its own hosts, and those go on with it.
func TestFillForANetwork(t *testing.T) {
	s := newSite(t, oneHost("127.0.0.1:2"))
	t.Setenv("RTP_NET_SECRET", encoded(realSecret))
	config := filepath.Join(s.dir, "network.yml")
	status, out, errs := landfall(t.Context(), "demo", "--fill", "600", "--config", config, "--json")
	if end := fillEnd(t, out); status != statusOK || end.Facts != 600 || end.Dir != filepath.Join(s.dir, defaultDataDir) {
		t.Fatalf("status %d, %+v\n%s", status, end, errs)
	}
	l := s.up(t, "all")
	l.says(t, "msg=ready")
	if status, out, errs = landfall(t.Context(), "verify", "--config", config); status != statusOK || !strings.Contains(out, "600 records") {
		t.Errorf("verify: status %d\n%s%s", status, out, errs)
	}
	if status, out, _ = landfall(t.Context(), "tail", "--config", config, "--type", "claimed", "--limit", "1"); status != statusOK || !strings.Contains(out, "edge/all") {
		t.Errorf("tail: status %d\n%s", status, out)
	}
}

func TestFillRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"a proxy to kill":     {[]string{"--fill", "10", "--kill-proxy"}, "give one"},
		"too much":            {[]string{"--fill", "100000001"}, "at most 100000000"},
		"a file without fill": {[]string{"--config", "network.yml"}, "only --fill goes by"},
		"players":             {[]string{"--fill", "10", "--players", "1000001"}, "want 1 to 1000000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			status, out, errs := landfall(t.Context(), append([]string{"demo"}, c.args...)...)
			if status != statusUsage || !strings.Contains(errs, c.says) || out != "" {
				t.Errorf("status %d; %q, want %q", status, errs, c.says)
			}
		})
	}
}
