package main

import (
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
)

// TestScoreTable: columns stand under their names, whatever the candidates report.
func TestScoreTable(t *testing.T) {
	d := events.Decision{
		Unreported: "queueDepth,heapUsed", Collision: "survival-1=minecraft:overworld,s2=minecraft:the_nether",
		Candidates: []events.Candidate{
			{Server: "survival-1", Region: "wild", Score: 0.352849, Terms: []events.Term{
				{Name: "mspt", Raw: 20, Score: 0.167759}, {Name: "keptCount", Raw: 32, Score: 0.185091},
			}},
			{Server: "s2", Region: "wild", Score: 10.25, Terms: []events.Term{
				{Name: "mspt", Score: 1, Missing: true}, {Name: "keptCount", Raw: 2.5, Score: 0.25}, {Name: "backendWeight", Raw: 0.123456789}, {Name: "home", Raw: 1},
			}},
		},
	}
	got := step{Decision: &d}.explained()
	want := strings.Join([]string{"",
		"candidate          score  mspt              keptCount     backendWeight      home",
		"survival-1/wild   0.3528  20 = 0.1678       32 = 0.1851",
		"s2/wild          10.2500  missing = 1.0000  2.5 = 0.2500  0.123457 = 0.0000  1 = 0.0000",
		"left out, since no candidate reports it: queueDepth, heapUsed",
		"the region means different worlds: survival-1=minecraft:overworld, s2=minecraft:the_nether",
	}, explainIndent)
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if line := describeDecision(d); !strings.Contains(line, "the region means different worlds (survival-1=minecraft:overworld,s2=") {
		t.Errorf("line %s", line)
	}
}
