package main

import (
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/docs"
)

// TestShippedPolicyIsOne: the program, the file's defaults and the example agree on it.
func TestShippedPolicyIsOne(t *testing.T) {
	want := actors.Policy{}.Name()
	for what, text := range map[string]string{"an empty file": "", "the example": string(docs.ExampleNetwork)} {
		if got := namedPolicy(t, text); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
}

// TestPolicyOfTheFile: each key about the choice makes another policy.
func TestPolicyOfTheFile(t *testing.T) {
	seen := map[string]string{actors.Policy{}.Name(): "shipped"}
	for _, text := range []string{
		"loadBalancer: { policy: roundRobin }",
		"loadBalancer: { policy: leastPlayers }",
		"loadBalancer: { policy: \"fixed:survival-1\" }",
		"loadBalancer: { terms: { mspt: { weight: 2 } } }",
		"loadBalancer: { terms: { mspt: { normalize: { min: 10, max: 60 } } } }",
		"loadBalancer: { terms: { mspt: { curve: { type: power, p: 3 } } } }",
		"loadBalancer: { terms: { mspt: { curve: { type: step } } } }",
		"loadBalancer: { terms: { mspt: { curve: { type: sigmoid, x0: 0.6, k: 9 } } } }",
		"loadBalancer: { terms: { playerCount: { weight: 1 } } }",
		"loadBalancer: { terms: { lag: { input: mspt, weight: 1 } } }",
		"loadBalancer: { terms: { recentPicks: { halfLifeSeconds: 5 } } }",
		"loadBalancer: { terms: { recentPicks: { shared: true } } }",
		"loadBalancer: { backends: { survival-2: { weight: 0.5 } } }",
		"routing: { prefer: local }",
	} {
		got := namedPolicy(t, text)
		if seen[got] != "" {
			t.Errorf("%s is the same policy as %s: %s", text, seen[got], got)
		}
		seen[got] = text
	}
	if got := namedPolicy(t, "loadBalancer: { policy: \"fixed:survival-1\" }"); !strings.HasPrefix(got, "fixed:survival-1/") {
		t.Errorf("%s", got)
	}
}

// TestLineOfTheFile: the file's defaults are the shipped rules, but for the pace, which only a file has.
func TestLineOfTheFile(t *testing.T) {
	want := actors.ShippedLineRules()
	want.DrainPerSecond = 10
	for text, want := range map[string]actors.LineRules{
		"": want,
		"line: { enabled: false, maxSize: 7, notifySeconds: 2, drainPerSecond: 0.5, maxBypass: 0 }": {MaxSize: 7, Notify: 2 * time.Second, DrainPerSecond: 0.5},
	} {
		n, err := network.Parse("network.yml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := lineOf(n); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func namedPolicy(t *testing.T, text string) string {
	t.Helper()
	n, err := network.Parse("network.yml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policyOf(n)
	if err != nil {
		t.Fatal(err)
	}
	return p.Name()
}
