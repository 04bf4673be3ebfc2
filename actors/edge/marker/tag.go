package marker

import (
	"strings"
	"unicode"
)

// The announcement is a suffix of a redirect's display name.
const (
	delimiter = "\x1f"   // unit separator; no name that a person typed has one
	scheme    = "nmbs1:" // the marker's version 1, then the id
)

// maxName is how many characters of a name stand before the announcement. A client that cuts
// off long names must not cut off the id.
const maxName = 64

// Announce gives the display name that says: the marker of id is understood here. What a name
// must not hold (control characters, so the delimiter too) is left out.
func Announce(name string, id ID) string {
	return Name(name) + delimiter + scheme + id.Hex()
}

// Name is a display name without an announcement: what no name must hold is left out, and it
// is not too long.
func Name(name string) string {
	clean := []rune(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, "")))
	return string(clean[:min(len(clean), maxName)])
}

// Split cuts the announcement off a display name: what a player may see is what stands before the
// delimiter, whatever follows it. announced tells that a well-formed id of a version known
// here did.
func Split(display string) (name string, id ID, announced bool) {
	name, suffix, _ := strings.Cut(display, delimiter)
	text, known := strings.CutPrefix(suffix, scheme)
	if !known {
		return name, ID{}, false
	}
	id, err := ParseID(text)
	return name, id, err == nil
}
