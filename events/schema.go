package events

import "fmt"

// Wire versions. Fields that may be left out do not raise them; names, meanings and what must be
// there do.
const (
	SchemaVersion = 1 // what this build writes
	SchemaOldest  = 1 // the oldest that it reads
)

// CheckSchema refuses a host that writes a wire version which this build does not read:
// SCHEMA_RANGE, naming both.
func CheckSchema(peer int) *Refusal { return checkSchema(peer, SchemaOldest, SchemaVersion) }

func checkSchema(peer, oldest, newest int) *Refusal {
	if oldest <= peer && peer <= newest {
		return nil
	}
	ours := fmt.Sprint(newest)
	if oldest < newest {
		ours = fmt.Sprintf("%d to %d", oldest, newest)
	}
	return Refuse(SchemaRange, fmt.Sprintf("it writes wire version %d, this build reads %s", peer, ours))
}
