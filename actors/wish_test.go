package actors

import (
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
)

// TestParseWish: nothing, a region, or a server and a region; all else is refused.
func TestParseWish(t *testing.T) {
	for text, want := range map[string]events.Wish{
		"":                     {},
		"  \t ":                {},
		"wild":                 {Region: "wild"},
		" wild ":               {Region: "wild"},
		"survival-1:wild":      {Pin: "survival-1", Region: "wild"},
		" survival-1 : wild_2": {Pin: "survival-1", Region: "wild_2"},
	} {
		if got, err := ParseWish(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		":", "a:", ":b", " : ", "a:b:c", "a::b", "region=wild", "a:b=c", "=", "a b", "ä", "a:b c", "../x", "a\nb", "$(x)",
		strings.Repeat("x", 64), "a:" + strings.Repeat("x", 64),
	} {
		if got, err := ParseWish(text); err == nil || got != (events.Wish{}) || !strings.Contains(err.Error(), "<server>:<region>") {
			t.Errorf("%q: %+v, %v; want a refusal that says what is wanted", text, got, err)
		}
	}
	if _, err := ParseWish(strings.Repeat("é=", 5000)); err == nil || len(err.Error()) > 400 {
		t.Errorf("a long text is repeated whole: %d bytes", len(err.Error()))
	}
}

// FuzzParseWish: whatever is typed gives names that fit a subject, or a refusal.
func FuzzParseWish(f *testing.F) {
	for _, s := range []string{"", "a", "a:b", "a:b:c", "a=b", " a : b "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, err := ParseWish(text)
		if err != nil {
			return
		}
		if w.Region == "" && w.Pin != "" || w.Region != "" && !isName(w.Region) || w.Pin != "" && !isName(string(w.Pin)) {
			t.Errorf("%q became %+v", text, w)
		}
	})
}
