package marker_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/actors/edge/marker"
)

const here = "play.example.net:42420"

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// TestAnnouncement: the suffix of a display name, as clients in the field read it.
func TestAnnouncement(t *testing.T) {
	id := marker.ID{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	display := marker.Announce("survival-2", id)
	if want := "survival-2\x1fnmbs1:00112233445566778899aabbccddeeff"; display != want || len(display) != 49 {
		t.Errorf("announced as %q", display)
	}
	name, got, announced := marker.Split(display)
	if name != "survival-2" || got != id || !announced {
		t.Errorf("read back %q %v %v", name, got, announced)
	}
}

// TestNamesThatLookLikeAnnouncements: whatever an operator calls a server, the announcement is
// found, and what a player sees has none in it.
func TestNamesThatLookLikeAnnouncements(t *testing.T) {
	for given, shown := range map[string]string{
		"":                         "",
		"a\x1fnmbs1:b":             "anmbs1:b",
		"nmbs1:0011":               "nmbs1:0011",
		"tab\tand\nline":           "tabandline",
		"Zoë Ω":                    "Zoë Ω",
		"\xff\xfebroken":           "broken",
		strings.Repeat("long", 99): strings.Repeat("long", 16),
		strings.Repeat("ß", 99):    strings.Repeat("ß", 64),
	} {
		name, id, announced := marker.Split(marker.Announce(given, counting))
		if name != shown || id != counting || !announced {
			t.Errorf("%q is shown as %q, announced %v %v", given, name, id, announced)
		}
		if marker.Name(given) != shown {
			t.Errorf("%q without an announcement is %q", given, marker.Name(given))
		}
	}
}

// TestSuffixesThatAnnounceNothing are cut off all the same.
func TestSuffixesThatAnnounceNothing(t *testing.T) {
	for _, suffix := range []string{
		"", "nmbs1:", "nmbs2:" + counting.Hex(), "NMBS1:" + counting.Hex(), "nmbs1:" + strings.ToUpper("0a") + counting.Hex()[2:],
		"nmbs1:" + counting.Hex() + "0", "nmbs1:" + counting.Hex()[2:], "nmbs1:" + counting.Hex() + "\x1f", " nmbs1:" + counting.Hex(), "garbage",
	} {
		if name, id, announced := marker.Split("name\x1f" + suffix); name != "name" || announced || id != (marker.ID{}) && announced {
			t.Errorf("%q: %q %v %v", suffix, name, id, announced)
		}
	}
	if name, _, announced := marker.Split("name nmbs1:" + counting.Hex()); announced || !strings.HasPrefix(name, "name nmbs1:") {
		t.Errorf("without the delimiter: %q %v", name, announced)
	}
}

// TestClientSendsOnlyWhatWasAnnounced walks through what can happen between a redirect and the
// next connection.
func TestClientSendsOnlyWhatWasAnnounced(t *testing.T) {
	other := marker.ID{15: 9}
	announce := func(m *marker.Memory, id marker.ID) { m.Redirected(marker.Announce("b", id), here, start) }
	for name, c := range map[string]struct {
		before func(m *marker.Memory)
		why    marker.Purpose
		remote string
		after  time.Duration
		want   []byte
	}{
		"announced":               {before: func(m *marker.Memory) { announce(m, counting) }, want: marker.Append(nil, counting)},
		"at the last moment":      {before: func(m *marker.Memory) { announce(m, counting) }, after: time.Minute, want: marker.Append(nil, counting)},
		"never announced":         {before: func(*marker.Memory) {}},
		"no tag":                  {before: func(m *marker.Memory) { m.Redirected("b", here, start) }},
		"malformed tag":           {before: func(m *marker.Memory) { m.Redirected("b\x1fnmbs1:xyz", here, start) }},
		"too late":                {before: func(m *marker.Memory) { announce(m, counting) }, after: time.Minute + time.Nanosecond},
		"clock stepped back":      {before: func(m *marker.Memory) { announce(m, counting) }, after: -time.Second},
		"another server":          {before: func(m *marker.Memory) { announce(m, counting) }, remote: "10.0.0.5:42421"},
		"a server list":           {before: func(m *marker.Memory) { announce(m, counting) }, why: marker.Query},
		"main menu in between":    {before: func(m *marker.Memory) { announce(m, counting); m.Forget() }},
		"newest of two":           {before: func(m *marker.Memory) { announce(m, other); announce(m, counting) }, want: marker.Append(nil, counting)},
		"cleared by a redirect":   {before: func(m *marker.Memory) { announce(m, counting); m.Redirected("c", here, start) }},
		"sent before":             {before: func(m *marker.Memory) { announce(m, counting); m.First(marker.Join, here, start) }},
		"went elsewhere meantime": {before: func(m *marker.Memory) { announce(m, counting); m.First(marker.Join, "else:1", start) }},
		"list in between":         {before: func(m *marker.Memory) { announce(m, counting); m.First(marker.Query, here, start) }, want: marker.Append(nil, counting)},
	} {
		var m marker.Memory
		c.before(&m)
		remote := c.remote
		if remote == "" {
			remote = here
		}
		if got := m.First(c.why, remote, start.Add(c.after)); !bytes.Equal(got, c.want) {
			t.Errorf("%s: sends % x, want % x", name, got, c.want)
		}
	}
}

// TestClientShowsNoAnnouncement: also where it is malformed or of another version.
func TestClientShowsNoAnnouncement(t *testing.T) {
	for _, suffix := range []string{"nmbs1:" + counting.Hex(), "nmbs9:77", ""} {
		var m marker.Memory
		if name := m.Redirected("survival-2\x1f"+suffix, here, start); name != "survival-2" {
			t.Errorf("shown as %q", name)
		}
	}
}
