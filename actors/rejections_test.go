package actors

import (
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

// TestRejectionsAreBounded: a hundred a second about each culprit, whoever the message names, in the
// order in which they came; one writes at a time, and all that was left out is counted.
func TestRejectionsAreBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	var r rejections
	put := func(culprit string, n int) (written int, left uint64) {
		for i := range n {
			_, l := r.put(events.Rejected{At: uint64(i)}, culprit, now)
			if l == 0 {
				written++
			}
			left = max(left, l)
		}
		return written, left
	}
	if write, _ := r.put(events.Rejected{}, "b", now); !write {
		t.Error("nobody is asked to write the first")
	}
	if write, _ := r.put(events.Rejected{}, "b", now); write {
		t.Error("two write at once")
	}
	if written, left := put("a", 300); written != 100 || left != 200 {
		t.Errorf("of a flood %d are taken, %d left out", written, left)
	}
	if written, _ := put("c", 3); written != 3 {
		t.Errorf("another's are left out: %d of 3 taken", written)
	}
	now = now.Add(time.Second / 2)
	if written, _ := put("a", 300); written != 50 {
		t.Errorf("half a second later %d are taken, want 50", written)
	}
	for want := range 2 + 100 {
		x, ok := r.next()
		if !ok || want >= 2 && x.At != uint64(want-2) {
			t.Fatalf("number %d is %+v, %v", want, x, ok)
		}
	}
	for range 3 + 50 {
		if _, ok := r.next(); !ok {
			t.Fatal("one is missing")
		}
	}
	if _, ok := r.next(); ok {
		t.Error("one too many")
	}
	if write, _ := r.put(events.Rejected{}, "d", now); !write {
		t.Error("nobody is asked to write on")
	}
}

// TestCulpritCannotBeForged: a message blames whoever it likes; the subject is what the store
// has checked.
func TestCulpritCannotBeForged(t *testing.T) {
	for _, c := range []struct {
		r    events.Rejected
		want string
	}{
		{events.Rejected{Source: "/edge/proxy-1/x", Subject: events.AskOf("b1", events.VerbRequest)}, "b1"},
		{events.Rejected{Source: "/backend/b2/x", Subject: events.NewsOf("b1", events.VerbLeft)}, "b1"},
		{events.Rejected{Source: "login/backend.b1", Subject: "$KV.control.kill"}, "login/backend.b1"},
		{events.Rejected{Source: "/edge/proxy-1/x", Subject: "$KV.transfers.p.t"}, "log"},
		{events.Rejected{}, "log"},
	} {
		if got := culpritOf(c.r); got != c.want {
			t.Errorf("%+v: %q, want %q", c.r, got, c.want)
		}
	}
}
