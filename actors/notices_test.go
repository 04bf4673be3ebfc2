package actors

import (
	"testing"
	"time"
)

func TestETAText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "1 s", 300 * time.Millisecond: "1 s", 4200 * time.Millisecond: "5 s", 10 * time.Second: "10 s", 11 * time.Second: "15 s",
		59 * time.Second: "60 s", 61 * time.Second: "2 min", 90 * time.Minute: "90 min", 3 * time.Hour: "3 h", 170 * time.Minute: "3 h",
	} {
		if got := etaText(d, true); got != want {
			t.Errorf("%s is told as %q, want %q", d, got, want)
		}
	}
	if got := etaText(time.Hour, false); got != "unknown" {
		t.Errorf("unknown is told as %q", got)
	}
}
