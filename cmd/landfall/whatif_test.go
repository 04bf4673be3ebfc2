package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExplainShowsTheChoices(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
	}{
		{"transfer", []string{"019c0fba-6000-7000-8000-000000000006"}},
		{"token", []string{"r-019c0fba600070008000000000000006-2"}},
		{"nobody", []string{"019c0fba-6000-7000-8000-000000000009", "--json"}},
		{"no-such-token", []string{"r-019c0fba600070008000000000000006-9"}},
		{"no-id", []string{"steve"}},
	} {
		args := append([]string{"explain"}, c.args...)
		o := onTape(t, wholeTape(t), withKey(), args...)
		var got transcript
		got.add(strings.Join(args, " "), o.stdout, o.stderr, o.status)
		got.matches(t, "explain-"+c.name)
	}
}

// TestWhatifChoosesAgain under a policy that wants the other server, one that says the same,
// and one that wants to know what nobody recorded.
func TestWhatifChoosesAgain(t *testing.T) {
	for _, c := range []struct {
		name, policy string
		args         []string
	}{
		{"elsewhere", "loadBalancer: { policy: \"fixed:survival-3\" }", nil},
		{"elsewhere-json", "loadBalancer: { policy: \"fixed:survival-3\" }", []string{"--json", "--until", "4"}},
		{"unknown", "loadBalancer: { terms: { mspt: { weight: 1 }, proxyRtt: { weight: 2 } } }", []string{"--all", "--since", "30"}},
		{"fault", "loadBalancer: { policy: best }", nil},
	} {
		file := filepath.Join(t.TempDir(), "new.yml")
		if err := os.WriteFile(file, []byte(c.policy), 0o600); err != nil {
			t.Fatal(err)
		}
		o := onTape(t, wholeTape(t), withKey(), append([]string{"whatif", "--policy", file}, c.args...)...)
		var got transcript
		got.add(strings.Join(append([]string{"whatif --policy new.yml"}, c.args...), " "), o.stdout, strings.ReplaceAll(o.stderr, file, "new.yml"), o.status)
		got.matches(t, "whatif-"+c.name)
	}
	if o := typed(t, "whatif"); o.status != statusUsage || !strings.Contains(o.stderr, "--policy FILE is missing") {
		t.Errorf("without a policy: %+v", o)
	}
}
