package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

const (
	adasTransfer = "0190c5b2-7d5e-7c3a-9d53-0b5a0d1f2e3c"
	adasRequest  = " --transfer " + adasTransfer
)

// answering is a bus on which a dispatcher gives one answer.
func answering(t *testing.T, a events.RequestAnswer) actors.Bus {
	t.Helper()
	mem := streamtest.NewMemory()
	keys := streamtest.Keyring()
	ready := make(chan struct{})
	go func() {
		_ = mem.Client("e1").Serve(t.Context(), events.TriggerOf("*"), "dispatchers", func() { close(ready) }, func(_ context.Context, subject string, w events.Wire) events.Wire {
			var q events.TriggerAsk
			call, refusal := events.OpenCall(keys, subject, w, &q)
			if refusal != nil || call.Source.Kind != events.SourceOperator || q.Transfer.String() != adasTransfer {
				t.Errorf("asked %+v by %s over %s: %v", q, call.Source, subject, refusal)
			}
			out, err := events.SealCall(keys, events.Call{ID: newID(), Source: streamtest.Source(events.SourceEdge, "e1"), Cause: call.ID}, time.Now(), subject, a)
			if err != nil {
				t.Error(err)
			}
			return out
		})
	}()
	<-ready
	return mem.Client("cli")
}

// triggeredOnTape runs the verb as its command line says, on a tape and a bus of the test's own.
func triggeredOnTape(t *testing.T, log history, bus actors.Bus, args ...string) outcome {
	t.Helper()
	var f triggerFlags
	c := &cobra.Command{}
	f.addTo(c)
	if err := c.ParseFlags(args[1:]); err != nil {
		t.Fatal(err)
	}
	o, err := newOpener(trust{secrets: withKey()})
	if err != nil {
		t.Fatal(err)
	}
	who, err := trust{secrets: withKey()}.speaker()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	plan, err := f.plan(args[0])
	if err == nil {
		plan.out, plan.notes = &stdout, &stderr
		err = plan.happen(t.Context(), log, bus, o, who)
	}
	if text := oneLine(err); text != "" {
		fmt.Fprintln(&stderr, "landfall:", text)
	}
	return outcome{stdout.String(), stderr.String(), statusOf(err)}
}

// TestTrigger: what somebody sees who says that an event happened.
func TestTrigger(t *testing.T) {
	log := newTape(t)
	session := func(name string, player events.PlayerID) {
		e1 := streamtest.Source(events.SourceEdge, "e1")
		log.put(player.String(), &events.SessionOpened{Session: events.Session{Holder: e1.ID, HolderIncarnation: e1.Incarnation, Name: name, Server: "a"}})
	}
	session("Ada", events.OfflinePlayer("Ada"))
	session("ADA", events.OfflinePlayer("ADA"))
	session("Ben", events.OfflinePlayer("Ben"))
	id, err := events.ParseID[events.TransferID](adasTransfer)
	if err != nil {
		t.Fatal(err)
	}
	accepted := answering(t, events.RequestAnswer{Code: events.Accepted, Transfer: id, Place: 17, State: "REQUESTED"})
	refusing := func(code events.Code, detail string) actors.Bus {
		return answering(t, events.RequestAnswer{Code: code, Detail: detail})
	}
	var got transcript
	for _, row := range []struct {
		bus     actors.Bus
		command string
	}{
		{accepted, "arena-end --player Ben"},
		{accepted, "arena-end --json --player " + events.OfflinePlayer("Ben").String()},
		{answering(t, events.RequestAnswer{Code: events.Active, Transfer: id, Place: 17, State: "PENDING"}), "arena-end --player ben"},
		{refusing(events.BadRequest, `no event is called "arena": there are arena-end`), "arena --player Ben"},
		{refusing(events.NotHere, "the player is not on the network"), "arena-end --player Ben"},
		{refusing(events.Resting, "280"), "arena-end --player Ben"},
		{refusing(events.NoPermission, "rtp.regions.end"), "arena-end --player Ben --json"},
		{accepted, "arena-end --player Ada"},
		{accepted, "arena-end --player Cleo"},
		{streamtest.NewMemory().Client("cli"), "arena-end --player Ben"},
	} {
		o := triggeredOnTape(t, log, row.bus, strings.Fields(row.command+adasRequest)...)
		got.add("trigger "+row.command, o.stdout, o.stderr, o.status)
	}
	for _, args := range [][]string{
		{"trigger", "--help"}, {"trigger", "arena-end"}, {"trigger", "arena.end", "--player", "Ben"}, {"trigger", "arena-end", "--player", "Ben", "--transfer", "7"}, {"trigger"},
	} {
		o := typed(t, args...)
		got.add(strings.Join(args, " "), o.stdout, o.stderr, o.status)
	}
	got.matches(t, "trigger")
}

// TestTriggerWithoutAnAnswer: nobody knows, and it is said how to find out.
func TestTriggerWithoutAnAnswer(t *testing.T) {
	log := newTape(t)
	ctx, cancel := context.WithCancel(t.Context())
	mem := streamtest.NewMemory()
	ready := make(chan struct{})
	go func() {
		_ = mem.Client("e1").Serve(t.Context(), events.TriggerOf("*"), "dispatchers", func() { close(ready) }, func(context.Context, string, events.Wire) events.Wire {
			cancel()
			return events.Silence()
		})
	}()
	<-ready
	o, err := newOpener(trust{secrets: withKey()})
	if err != nil {
		t.Fatal(err)
	}
	who, err := trust{secrets: withKey()}.speaker()
	if err != nil {
		t.Fatal(err)
	}
	id := events.TransferID(newID())
	plan := &trigger{event: "arena-end", player: events.OfflinePlayer("Ben").String(), transfer: id, out: &bytes.Buffer{}, notes: &bytes.Buffer{}}
	err = plan.happen(ctx, log, mem.Client("cli"), o, who)
	if statusOf(err) != statusIncomplete || !strings.Contains(err.Error(), "repeat it with --transfer "+id.String()) {
		t.Errorf("status %d, %v", statusOf(err), err)
	}
}
