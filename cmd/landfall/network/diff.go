package network

import (
	"reflect"
	"slices"
	"strings"
)

// What a Change is.
const (
	Changed = "changed"
	Added   = "added"
	Removed = "removed"
)

// Change is one key in which two configurations differ, or an entry, such as a host, that only one of them has.
type Change struct {
	Key  string
	What string
	// From and To are values as in Setting; nil: the key is not there, or it is an entry with keys of its own.
	From, To any
	// Live tells that a running host takes it on.
	Live bool
}

// Diff lists, by key, in what two configurations differ, as they hold: a default that is written out is no difference.
func Diff(from, to *Network) []Change {
	a, b := from.listing(), to.listing()
	ours, theirs := a.byKey(), b.byKey()
	var changes []Change
	for _, s := range a.settings {
		t, both := theirs[s.Key]
		switch {
		case !both:
			changes = b.missing(changes, s, Removed)
		case !reflect.DeepEqual(s.Value, t.Value):
			changes = append(changes, Change{Key: s.Key, What: Changed, From: s.Value, To: t.Value, Live: s.Live})
		}
	}
	for _, t := range b.settings {
		if _, both := ours[t.Key]; !both {
			changes = a.missing(changes, t, Added)
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Key, b.Key) })
	return changes
}

func (l *listing) byKey() map[string]Setting {
	m := make(map[string]Setting, len(l.settings))
	for _, s := range l.settings {
		m[s.Key] = s
	}
	return m
}

// missing notes, once, that l lacks what the other has: the outermost entry around the key, or the key itself.
func (l *listing) missing(changes []Change, s Setting, what string) []Change {
	if _, noEntries := s.Value.(map[string]any); noEntries {
		return changes // l has some, and they are told
	}
	c := Change{Key: l.outermost(s), What: what, Live: s.Live}
	if c.Key == s.Key && what == Removed {
		c.From = s.Value
	} else if c.Key == s.Key {
		c.To = s.Value
	}
	if slices.ContainsFunc(changes, func(x Change) bool { return x.Key == c.Key }) {
		return changes
	}
	return append(changes, c)
}

// outermost is the widest entry around a key that l has not, or the key.
func (l *listing) outermost(s Setting) string {
	for _, entry := range s.entries {
		if !l.entries[entry] {
			return entry
		}
	}
	return s.Key
}
