package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

const (
	tokenRounds    = 20
	maxTokenRounds = 1000
	reapPatience   = 20 * time.Second // of a token whose time is over, with dispatchers running
	reapLook       = 5 * time.Second  // after which a network without a heartbeat of a dispatcher has none
)

func newTestTokens() *cobra.Command {
	var f testFlags
	rounds := tokenRounds
	c := &cobra.Command{
		Use:   "tokens",
		Short: "Take tokens of test players from request to arrival through the log, and let one run out",
		Long: `Lets two peers of the test's own pass tokens to each other through the store: one writes the
request, the reservation and the claim, the other finds the token in its own fold, and writes
the arrival and the placement. Every step is decided by the rule that dispatchers decide by,
written behind the same guard, and timed until the other peer has it. Once both claim the same
token, and one must lose; once a token is given back and reserved anew.

The last token lasts 1 ms, and nobody comes for it: a dispatcher of the network has to end it.
Where none runs the test does.

The players are nobody's, no backend is asked for anything, and nobody is moved. Everything
that was opened is ended again, also when the test fails; the facts stay in the log, as all do.

Exit status: 0 every token went through in time and the last one was ended, 1 one did not.`,
		Example: `  landfall test network tokens --config network.yml`,
		Args:    exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			if rounds < 1 || rounds > maxTokenRounds {
				return usageError("--count %d: want 1 to %d tokens", rounds, maxTokenRounds)
			}
			return f.run(c, func(ctx context.Context, p peer) testReport { return runTokenTest(ctx, p, rounds) })
		},
	}
	f.add(c, "how long one step of a token may take")
	c.Flags().IntVar(&rounds, "count", rounds, "how many tokens go through")
	return c
}

func newTestAll() *cobra.Command {
	var f testFlags
	c := &cobra.Command{
		Use:     "all",
		Short:   "Run all tests of the network",
		Long:    "Runs the tests heartbeat and tokens, one after the other, also when the first one fails.\n\nExit status: 0 both passed, 1 one did not.",
		Example: `  landfall test network all --config network.yml --json`,
		Args:    exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c, func(ctx context.Context, p peer) testReport {
				h := heartbeatTest{peer: p}
				r := allReport{Heartbeat: h.report(h.run(ctx)), Tokens: runTokenTest(ctx, p, tokenRounds)}
				r.OK = r.Heartbeat.OK && r.Tokens.OK
				return r
			})
		},
	}
	f.add(c, "how long one step of a test may take")
	return c
}

// allReport is what all tests have to say.
type allReport struct {
	OK        bool            `json:"ok"`
	Heartbeat heartbeatReport `json:"heartbeat"`
	Tokens    tokenReport     `json:"tokens"`
}

func (r allReport) passed() bool { return r.OK }

// String is one report behind the other.
func (r allReport) String() string { return r.Heartbeat.String() + r.Tokens.String() }

// tokenTest is one run of the test.
type tokenTest struct {
	peer

	near, far *sighting         // the folds of the one who asks, and of the one who finds
	players   []events.PlayerID // who must have nothing under way at the end
	took      map[string][]time.Duration
	promises  uint64
}

// tokenSteps are those of one token, in order.
var tokenSteps = []string{"requested", "reserved", "claimed", "consumed", "completed"}

// tokenReport is what the test prints with --json.
type tokenReport struct {
	OK     bool          `json:"ok"`
	Host   events.HostID `json:"host"`
	Tokens int           `json:"tokens"` // that went from request to arrival
	Steps  []stepSeen    `json:"steps"`
	Raced  string        `json:"raced,omitempty"` // what the second of two claims met
	Reaped *reaped       `json:"reaped"`          // null: it was not
	Left   int           `json:"left"`            // transfers that could not be ended
	Error  string        `json:"error,omitempty"`
}

// stepSeen is how long one step took until the other peer had it, in milliseconds.
type stepSeen struct {
	Step   string  `json:"step"`
	Median float64 `json:"medianMs"`
	Most   float64 `json:"mostMs"`
}

// reaped is how a token ended that nobody came for.
type reaped struct {
	By      events.HostID `json:"by"` // the dispatcher, or the test itself
	Code    events.Code   `json:"code"`
	AfterMs float64       `json:"afterMs"`
}

func (r tokenReport) passed() bool { return r.OK }

func runTokenTest(ctx context.Context, p peer, rounds int) tokenReport {
	t := &tokenTest{peer: p, took: map[string][]time.Duration{}}
	r := tokenReport{Host: p.host, Steps: []stepSeen{}}
	err := observe(ctx, p.log, p.keys, p.within, func(ctx context.Context, near *sighting) error {
		return observe(ctx, p.log, p.keys, p.within, func(ctx context.Context, far *sighting) error {
			t.near, t.far = near, far
			err := t.run(ctx, rounds, &r)
			r.Left = t.clean(context.WithoutCancel(ctx))
			return err
		})
	})
	if err == nil && r.Left > 0 {
		err = fmt.Errorf("%d transfers of the test could not be ended", r.Left)
	}
	if r.OK = err == nil; err != nil {
		r.Error = oneLine(err)
	}
	for _, step := range tokenSteps {
		if took := t.took[step]; len(took) > 0 {
			slices.Sort(took)
			r.Steps = append(r.Steps, stepSeen{step, milliseconds(took[len(took)/2]), milliseconds(took[len(took)-1])})
		}
	}
	return r
}

func (t *tokenTest) run(ctx context.Context, rounds int, r *tokenReport) (err error) {
	for i := range rounds {
		if err := t.round(ctx, i == 0, i == 1, r); err != nil {
			return fmt.Errorf("token %d of %d: %w", i+1, rounds, err)
		}
		r.Tokens++
	}
	r.Reaped, err = t.reap(ctx)
	return err
}

// round takes one token from the request to the arrival.
func (t *tokenTest) round(ctx context.Context, race, again bool, r *tokenReport) error {
	j := t.journey()
	if err := j.reserve(ctx, 30*time.Second); err != nil {
		return err
	}
	if again {
		if err := j.giveBack(ctx); err != nil {
			return err
		}
	}
	token := t.near.Player(j.player).Active.Token
	before := t.far.Player(j.player).Guard
	if err := j.write(ctx, t.near, t.far, "claimed", actors.Claim{Token: token, By: t.source()}); err != nil {
		return err
	}
	if race {
		if err := j.claimTwice(ctx, token, before, r); err != nil {
			return err
		}
	}
	arrived := actors.Consume{Server: t.host, Incarnation: t.life, Join: events.JoinID(newID()), Held: []events.Token{token}}
	if err := j.write(ctx, t.far, t.near, "consumed", arrived); err != nil {
		return err
	}
	return j.write(ctx, t.far, t.near, "completed", actors.Complete{Token: token, Server: t.host, At: testPlace})
}

// testPlace is where nobody is put.
var testPlace = events.Position{World: "test:nowhere"}

func (t *tokenTest) source() events.Source {
	return events.Source{Kind: events.SourceAPI, ID: t.host, Incarnation: t.life}
}

// tokenJourney is that of one player who does not exist.
type tokenJourney struct {
	*tokenTest

	player   events.PlayerID
	transfer events.TransferID
}

func (t *tokenTest) journey() tokenJourney {
	j := tokenJourney{t, events.PlayerID(newID()), events.TransferID(newID())}
	t.players = append(t.players, j.player)
	return j
}

// reserve asks for a place, and promises one.
func (j tokenJourney) reserve(ctx context.Context, ttl time.Duration) error {
	wish := events.Wish{Pin: j.host}
	ask := actors.Request{Transfer: j.transfer, Fact: events.Requested{Trigger: events.TriggerAPI, Via: "test", Wish: wish, Name: string(j.host)}}
	if err := j.write(ctx, j.near, j.far, "requested", ask); err != nil {
		return err
	}
	return j.promise(ctx, ttl)
}

func (j tokenJourney) promise(ctx context.Context, ttl time.Duration) error {
	j.promises++
	return j.write(ctx, j.near, j.far, "reserved", actors.Reserve{Transfer: j.transfer, By: j.source(), Fact: events.Reserved{
		Server: j.host, Incarnation: j.life, Promise: j.promises, Region: "test", At: testPlace, TTLMs: ttl.Milliseconds(),
		Decision: events.Decision{Policy: "test", Candidates: []events.Candidate{}, Filtered: []events.Filtered{}},
	}})
}

// giveBack gives the place back, and gets another one.
func (j tokenJourney) giveBack(ctx context.Context) error {
	free := actors.Release{Token: j.near.Player(j.player).Active.Token, Reason: events.LostRace, Detail: "test"}
	if err := j.write(ctx, j.near, j.far, "", free); err != nil {
		return err
	}
	return j.promise(ctx, 30*time.Second)
}

// claimTwice is the other peer that claims a token which is claimed: neither does the rule allow
// it, nor does the log take it from one who has not heard of the first claim.
func (j tokenJourney) claimTwice(ctx context.Context, token events.Token, before uint64, r *tokenReport) error {
	_, _, refusal := actors.Decide(j.standing(j.far), actors.Claim{Token: token, By: j.source()})
	if refusal == nil {
		return errors.New("a token was claimed twice: the rule allowed it")
	}
	m, err := j.seal(&events.Claimed{Attempt: token.Attempt, Dispatcher: j.host, Incarnation: j.life}, before)
	if err != nil {
		return err
	}
	seq, err := j.log.Append(ctx, m)
	failed, known := errors.AsType[*events.AppendError](err)
	switch {
	case err == nil:
		return fmt.Errorf("a token was claimed twice: the log took the second claim, at %d", seq)
	case !known || failed.Reason != events.Conflict:
		return fmt.Errorf("the second claim: %w", err)
	}
	r.Raced = string(failed.Reason)
	return nil
}

// reap lets a token run out.
func (t *tokenTest) reap(ctx context.Context) (*reaped, error) {
	j := t.journey()
	if err := j.reserve(ctx, time.Millisecond); err != nil {
		return nil, fmt.Errorf("the token that shall run out: %w", err)
	}
	began := time.Now()
	t.near.endings.Store(&endings{of: j.transfer})
	over := func() bool { return t.near.Player(j.player).Active == nil }
	if err := t.wait(ctx, min(reapLook, reapPatience), over); err != nil && ctx.Err() != nil {
		return nil, err
	}
	if !over() && t.dispatchers() > 0 {
		if err := t.wait(ctx, reapPatience-reapLook, over); err != nil {
			return nil, fmt.Errorf("%d dispatchers beat, and none has ended a token of 1 ms within %s", t.dispatchers(), reapPatience)
		}
	}
	if !over() {
		token := t.near.Player(j.player).Active.Token
		if err := j.write(ctx, t.near, t.far, "", actors.Expire{Token: token, Reason: events.TTLPassed}); err != nil {
			return nil, err
		}
		if err := j.write(ctx, t.near, t.far, "", actors.Cancel{Transfer: j.transfer, Code: events.Cancel, Detail: "test"}); err != nil {
			return nil, err
		}
	}
	last := t.near.Player(j.player).Last()
	return &reaped{By: t.near.endings.Load().by(), Code: last.Code, AfterMs: milliseconds(time.Since(began))}, nil
}

// wait waits for what the near fold shall come to, no longer than for so long.
func (t *tokenTest) wait(ctx context.Context, most time.Duration, cond func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return t.near.until(ctx, cond)
}

// dispatchers counts those that beat while the test watches.
func (t *tokenTest) dispatchers() (n int) {
	f := t.near.Fleet()
	for _, p := range f.Proxies {
		if p.Live && f.Silence(p.Seen, time.Now()) <= reapLook {
			n++
		}
	}
	return n
}

// standing is what a dispatcher that holds the player would decide on.
func (j tokenJourney) standing(fold *sighting) actors.Standing {
	return actors.Standing{
		Player: fold.Player(j.player), HasSession: true,
		Session: projections.Session{Open: true, Session: events.Session{Holder: j.host, HolderIncarnation: j.life, Kind: events.KindAPI, Server: j.host, Name: string(j.host)}},
	}
}

func (j tokenJourney) seal(f events.Fact, guard uint64) (events.Message, error) {
	return events.Seal(j.keys, events.Envelope{
		ID: newID(), Source: j.source(), Time: time.Now(), Key: events.TransferKey(j.player, j.transfer), Correlation: j.transfer, Prev: guard,
	}, f)
}

// write lets one peer decide a command on its fold and write the fact, until both have it. The
// time of a step that is named counts until the other one does.
func (j tokenJourney) write(ctx context.Context, by, other *sighting, step string, c actors.Command) error {
	what := cmp.Or(step, strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", c), "actors.")))
	ctx, cancel := context.WithTimeoutCause(ctx, j.within, fmt.Errorf("%s: not there within %s", what, j.within))
	defer cancel()
	s := j.standing(by)
	_, fact, refusal := actors.Decide(s, c)
	if refusal != nil {
		return fmt.Errorf("%s: %w", what, refusal)
	}
	m, err := j.seal(fact, s.Guard)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	began := time.Now()
	seq, err := j.log.Append(ctx, m)
	if err != nil {
		return fmt.Errorf("%s: %w", what, cmp.Or(context.Cause(ctx), err))
	}
	for _, fold := range []*sighting{other, by} {
		if err := fold.WaitFolded(ctx, events.Transfers, seq); err != nil {
			return fmt.Errorf("%s: %w", what, cmp.Or(context.Cause(ctx), err))
		}
		if fold == other && step != "" {
			j.took[step] = append(j.took[step], time.Since(began))
		}
	}
	return nil
}

// clean ends whatever the test has opened and gives how much it could not.
func (t *tokenTest) clean(ctx context.Context) (left int) {
	for _, player := range t.players {
		active := t.near.Player(player).Active
		if active == nil {
			continue
		}
		j := tokenJourney{t, player, active.ID}
		var end actors.Command = actors.Cancel{Transfer: active.ID, Code: events.Cancel, Detail: "test"}
		if active.Phase == projections.Claimed || active.Phase == projections.Consumed {
			end = actors.Fail{Transfer: active.ID, Code: events.NotArrived, Detail: "test"}
		}
		if err := j.write(ctx, t.near, t.far, "", end); err != nil && t.near.Player(player).Active != nil {
			left++
		}
	}
	return left
}

// String is a line for each step, one for each of the rest, and one for the whole.
func (r tokenReport) String() string {
	var b strings.Builder
	for _, x := range r.Steps {
		fmt.Fprintf(&b, "%s  %-9s  with the other peer after %.1f ms, at most %.1f ms\n", r.Host, x.Step, x.Median, x.Most)
	}
	if r.Raced != "" {
		fmt.Fprintf(&b, "%s  claimed twice: the second claim met a %s\n", r.Host, r.Raced)
	}
	if x := r.Reaped; x != nil {
		fmt.Fprintf(&b, "%s  a token of 1 ms ended with %s after %.1f ms, by %s\n", r.Host, x.Code, x.AfterMs, x.By)
	}
	if r.Left > 0 {
		fmt.Fprintf(&b, "%s  %d transfers could not be ended: a dispatcher of the network does so when their time is over\n", r.Host, r.Left)
	}
	if r.OK {
		fmt.Fprintf(&b, "ok: all %d tokens went through, nothing is left\n", r.Tokens)
	} else {
		fmt.Fprintf(&b, "failed: %s\n", printable(r.Error))
	}
	return b.String()
}
