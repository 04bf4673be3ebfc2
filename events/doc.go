// Package events is the vocabulary of Landfall: identifiers, one struct for each
// fact, requests between hosts, refusal codes, and the envelope that carries them
// (CloudEvents headers, a MessagePack body, a signature).
//
// It does no I/O and knows neither clock nor log: times and ids come from the
// caller. Wire names are literals here and are never derived from Go names, so a
// rename in the code cannot orphan history.
package events
