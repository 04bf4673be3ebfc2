package main

import (
	"fmt"
	"slices"

	"github.com/landfall/landfall/events"
)

// ends are the last sequences of the buckets, as a log has them. Without any everything is
// still to come.
type ends map[events.Bucket]uint64

// after are spans that begin behind what is in the log.
func (e ends) after() []events.Span {
	out := make([]events.Span, 0, len(events.SpannedBuckets))
	for _, b := range events.SpannedBuckets {
		out = append(out, events.Span{Bucket: b, From: e[b] + 1})
	}
	return out
}

// ended gives spans an end where they have none: the last sequence there is. A span in which
// nothing can have been signed yet becomes an empty one.
func (e ends) ended(spans []events.Span) []events.Span {
	out := slices.Clone(spans)
	for i := range out {
		s := &out[i]
		switch last := e[s.Bucket]; {
		case s.Until != 0:
		case last == 0:
			s.From, s.Until = 2, 1
		default:
			s.Until = last
		}
	}
	return out
}

// openKeys are the keys that log in and sign, by their place in the identity.
func openKeys(f events.IdentitySet) (at []int) {
	for i, k := range f.Keys {
		if !k.Closed {
			at = append(at, i)
		}
	}
	return at
}

// maxOpenKeys is one, and during a renewal the next.
const maxOpenKeys = 2

// addKey gives an identity another key, good from now on.
func addKey(f events.IdentitySet, public string, now ends) (events.IdentitySet, error) {
	if len(openKeys(f)) >= maxOpenKeys {
		return f, fmt.Errorf("%s has %d keys already: end the earlier one first: landfall creds revoke %s %s --earlier", f.Host, maxOpenKeys, f.Role, f.Host)
	}
	f.Keys = append(slices.Clone(f.Keys), events.HostKey{Key: public, Spans: now.after()})
	for len(f.Keys) > events.MaxHostKeys { // open ones are the last
		f.Keys = f.Keys[1:]
	}
	return f, nil
}

// withoutSecret makes the shared secret speak for a host no more, from now on.
func withoutSecret(f events.IdentitySet, now ends) events.IdentitySet {
	if len(f.Alone) == 0 {
		f.Alone = now.after()
	}
	return f
}

// closing closes the open keys, or all of them but the newest. The spans stay open: what the
// bearer signs until it is cut must count everywhere or nowhere.
func closing(f events.IdentitySet, butNewest bool) events.IdentitySet {
	f.Keys = slices.Clone(f.Keys)
	at := openKeys(f)
	if butNewest && len(at) > 0 {
		at = at[:len(at)-1]
	}
	for _, i := range at {
		f.Keys[i].Closed = true
	}
	return f
}

// endSpans ends the spans of the closed keys, whose bearers have been cut.
func endSpans(f events.IdentitySet, now ends) events.IdentitySet {
	f.Keys = slices.Clone(f.Keys)
	for i := range f.Keys {
		if f.Keys[i].Closed {
			f.Keys[i].Spans = now.ended(f.Keys[i].Spans)
		}
	}
	return f
}

// unsealed tells that a closed key may still have signed what comes.
func unsealed(f events.IdentitySet) bool {
	return slices.ContainsFunc(f.Keys, func(k events.HostKey) bool {
		return k.Closed && slices.ContainsFunc(k.Spans, func(s events.Span) bool { return s.Until == 0 })
	})
}
