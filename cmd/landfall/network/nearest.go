package network

import (
	"fmt"
	"strings"
)

// Nearest is the known name that a mistyped one most likely is, empty when none is like it.
// Of two that are alike it is the lesser. Names that have no letter in common are not alike.
func Nearest(name string, known []string) string {
	best, least := "", max(len(name)/3, 2)+1
	for _, k := range known {
		d := distance(strings.ToLower(name), strings.ToLower(k))
		if d >= max(len(name), len(k)) {
			continue
		}
		if d < least || d == least && best != "" && k < best {
			best, least = k, d
		}
	}
	return best
}

// Meant asks whether a name is the one that was meant.
func Meant(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", name)
}

// distance is how many letters must be put in, taken out or exchanged to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
