package streamtest

import (
	"context"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

// Conn is the connection of one host: its log and its bus (see the ports in actors).
type Conn interface {
	Append(ctx context.Context, m events.Message) (uint64, error)
	Last(ctx context.Context, b events.Bucket, key string) (events.Record, bool, error)
	LastOf(ctx context.Context, b events.Bucket, key string) (events.Record, bool, error)
	Tail(ctx context.Context, b events.Bucket, from events.TailStart, f events.Follower) error
	Ask(ctx context.Context, subject string, w events.Wire) (events.Wire, error)
	Serve(ctx context.Context, subject, queue string, ready func(), handle func(ctx context.Context, subject string, w events.Wire) events.Wire) error
	Announce(ctx context.Context, subject string, w events.Wire) error
	Listen(ctx context.Context, subject string, ready func(), hear func(subject string, w events.Wire)) error
}

// Store is one network under test: how to connect to it, and how to break it. A hook may
// be nil when its feature is not promised. Hooks fail the test when they cannot do it.
type Store struct {
	// Connect gives a new host's connection; t.Cleanup closes it. It is ready for use.
	Connect func(t *testing.T) Conn
	// Cut breaks the connection of c until Heal. Cut returns once it is broken; Heal may
	// return before it stands again.
	Cut, Heal func(t *testing.T, c Conn)
	// LoseAck lets the next append of c be stored without c hearing of it. c recovers by itself.
	LoseAck func(t *testing.T, c Conn)
	// Outage stops the whole store; Restore brings it back with everything it had
	// acknowledged, and may return before connections stand again.
	Outage, Restore func(t *testing.T)
	// Replace makes the bucket's stream again, with these messages from sequence 1 on and
	// nothing else. keepIncarnation: as a store does that came back with another past.
	Replace func(t *testing.T, b events.Bucket, keepIncarnation bool, messages []events.Message)
	// Expire removes, as retention does, everything the bucket holds; it returns once it is gone.
	Expire func(t *testing.T, b events.Bucket)
}

// Features says what an implementation promises; the suite picks its cases by it. A
// promised feature without its hook fails.
type Features struct {
	Cut     bool // Store.Cut, Heal
	LoseAck bool // Store.LoseAck
	Outage  bool // Store.Outage, Restore
	Replace bool // Store.Replace
	Expire  bool // Store.Expire
	Races   int  // rounds of the write-skew race; 0: 1500
	Tokens  int  // tokens of the claim race; 0: 1000
}

func (f Features) withDefaults() Features {
	if f.Races == 0 {
		f.Races = 1500
	}
	if f.Tokens == 0 {
		f.Tokens = 1000
	}
	return f
}

// Factory makes stores.
type Factory struct {
	Features Features
	// Open gives a fresh, empty store; t.Cleanup ends it.
	Open func(t *testing.T) Store
}

// patience is how long the suite waits for what must happen. Nothing waits for it to pass.
const patience = 30 * time.Second

// suiteCase is one promise of the ports.
type suiteCase struct {
	name string
	run  func(t *testing.T, s Store, f Features)
}

// Run holds an implementation against the contract of the log and the bus. Cases that
// leave the store whole share one; each of the others gets its own.
func Run(t *testing.T, factory Factory) {
	t.Helper()
	f := factory.Features.withDefaults()
	t.Run("whole", func(t *testing.T) {
		s := factory.open(t)
		for _, c := range wholeCases {
			t.Run(c.name, func(t *testing.T) { c.run(t, s, f) })
		}
	})
	t.Run("broken", func(t *testing.T) { runBroken(t, factory) })
}

func runBroken(t *testing.T, factory Factory) {
	t.Helper()
	f := factory.Features.withDefaults()
	for _, c := range brokenCases(f) {
		t.Run(c.name, func(t *testing.T) { c.run(t, factory.open(t), f) })
	}
}

func (factory Factory) open(t *testing.T) Store {
	t.Helper()
	s, f := factory.Open(t), factory.Features
	missing := map[string]bool{
		"Connect": s.Connect == nil,
		"Cut":     f.Cut && (s.Cut == nil || s.Heal == nil),
		"LoseAck": f.LoseAck && s.LoseAck == nil,
		"Outage":  f.Outage && (s.Outage == nil || s.Restore == nil),
		"Replace": f.Replace && s.Replace == nil,
		"Expire":  f.Expire && s.Expire == nil,
	}
	for name, absent := range missing {
		if absent {
			t.Fatalf("store has no hook for the promised feature %s", name)
		}
	}
	return s
}

var wholeCases = []suiteCase{
	{"guard/exact key", guardOfOneKey},
	{"guard/whole player", guardOfOnePlayer},
	{"guard/two keys of a player race", raceOfTwoKeys},
	{"guard/conflicts are typed", conflictsAreTyped},
	{"append/record is what was sealed", recordIsExact},
	{"append/same id again", sameIDAgain},
	{"append/id of another fact", idOfAnotherFact},
	{"append/cancelled caller", cancelledAppend},
	{"append/full key", fullKey},
	{"append/rolling key", rollingKey},
	{"append/headers that erase", erasingHeaders},
	{"append/time to live", recordExpires},
	{"append/time to live of a key that goes on", newerRecordStands},
	{"append/time to live where facts stay", noTTLWhereFactsStay},
	{"last/through the leader", lastIsFresh},
	{"last/of one key", lastOfKey},
	{"tail/history then live", tailHistory},
	{"tail/resume at cursor", tailResume},
	{"tail/last per key", tailLastPerKey},
	{"tail/what is alive", liveWhole},
	{"tail/what is alive, below a busy writer", liveBelowWriter},
	{"tail/what is alive, of many", liveOfMany},
	{"tail/what is alive wants a follower that knows", liveWantsToKnow},
	{"tail/many at once", manyTails},
	{"tail/slow follower", slowFollower},
	{"tail/ends with the follower's error", tailError},
	{"bus/ask and answer", askAndAnswer},
	{"bus/one of a queue answers", oneOfAQueue},
	{"bus/nobody", nobodyAnswers},
	{"bus/deadline", askDeadline},
	{"bus/silence", silence},
	{"bus/handlers run at once, within bounds", handlersBounded},
	{"bus/serve waits for its handlers", serveWaits},
	{"bus/news in order", newsInOrder},
	{"claim race", claimRace},
}

func brokenCases(f Features) []suiteCase {
	var out []suiteCase
	when := func(promised bool, cases ...suiteCase) {
		if promised {
			out = append(out, cases...)
		}
	}
	when(f.LoseAck, suiteCase{"append/lost acknowledgement", lostAck})
	when(f.Cut,
		suiteCase{"append/no late landing after a cut", noLateLandingAfterCut},
		suiteCase{"tail/across cuts", tailAcrossCuts},
		suiteCase{"tail/last per key across a cut", lastPerKeyAcrossCut},
		suiteCase{"tail/what is alive, across cuts", liveAcrossCuts},
		suiteCase{"tail/what is alive, cut while it begins", liveCutInBeginning},
		suiteCase{"bus/across a cut", busAcrossCut})
	when(f.Outage,
		suiteCase{"append/no late landing after an outage", noLateLandingAfterOutage},
		suiteCase{"tail/across an outage", tailAcrossOutage})
	when(f.Replace,
		suiteCase{"fork/stream made again", forkMadeAgain},
		suiteCase{"fork/same facts, other incarnation", forkOtherIncarnation},
		suiteCase{"fork/shorter stream", forkShorter},
		suiteCase{"fork/same sequence, other fact", forkOtherFact},
		suiteCase{"fork/seen by a running tail", forkWhileTailing},
		suiteCase{"fork/looks again for what is alive", liveAcrossFork})
	when(f.Expire,
		suiteCase{"retention/guard is 0 again", guardAfterRetention},
		suiteCase{"retention/is no fork", retentionIsNoFork})
	when(f.Expire && f.Cut,
		suiteCase{"retention/missed records begin anew", missedRecordsBeginAnew},
		suiteCase{"retention/missed records look again for what is alive", liveMissedRecords})
	return out
}
