package network

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"survival-1", "survival-2", "lobby", "proxy-1", "failed.NO_CANDIDATE"}
	for name, want := range map[string]string{
		"survival1": "survival-1", "Survival-2": "survival-2", "survival-3": "survival-1", "loby": "lobby", "lob": "lobby", "proxi-1": "proxy-1",
		"xyz": "", "prxy-1": "proxy-1",
		"failed.NOCANDIDATE": "failed.NO_CANDIDATE", "creative": "", "": "", "x": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%q is taken for %q, want %q", name, got, want)
		}
	}
	if got := Nearest("z", []string{"k", "p", "x0"}); got != "" {
		t.Errorf("one letter is taken for another: %q", got)
	}
	if got := Nearest("a", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "ac", 1}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want || distance(c.b, c.a) != c.want {
			t.Errorf("%q to %q is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
