package network

import (
	"fmt"
	"strings"
)

// maxSlips is how many letters a name may be off to be taken for another one.
const maxSlips = 2

// hint names the one of the names that was most likely meant, or says nothing.
func hint(word string, names []string) string {
	best, least := "", maxSlips+1
	for _, name := range names {
		if n := slips(strings.ToLower(word), strings.ToLower(name)); n < least {
			best, least = name, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// slips counts the letters to insert, leave out or replace to make b of a.
func slips(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
