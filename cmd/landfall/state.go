package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// topic is one of the states that can be looked at.
type topic struct {
	name   string
	short  string
	bucket events.Bucket // whose sequences --as-of counts
	header string
	rows   func(f *frozen) []stateRow
}

// stateRow is one entity of a state.
type stateRow interface {
	fmt.Stringer
	// entity names it, the same in every state.
	entity() string
}

func topics() []topic {
	return []topic{
		{"fleet", "the last heartbeat of every host", events.Fleet, fleetHeader, fleetRows},
		{"line", "who waits, in the order of their places", events.Transfers, lineHeader, lineRows},
		{"sessions", "who is connected, where, and who holds them", events.Sessions, sessionsHeader, sessionRows},
		{"transfers", "the transfers under way", events.Transfers, transfersHeader, transferRows},
		{"control", "what operators decided that holds", events.Control, controlHeader, controlRows},
	}
}

// stateFlags are the command line of state.
type stateFlags struct {
	storeFlags
	asOf string
	json bool
}

func newState() *cobra.Command {
	var f stateFlags
	c := &cobra.Command{
		Use:   "state",
		Short: "Show the network as the log has it, now or at a moment of the past",
		Long: `Shows one part of the network's state: the log folded as every dispatcher folds it, up to its
end, or with --as-of up to a sequence or a time. A sequence is one of the bucket that the part
comes from (fleet, sessions and control have their own, line and transfers are of transfers);
a time is UTC unless it says otherwise, on the streams' clocks. On stderr stands which sequence
of each bucket was taken. Ages are counted back from that moment.

Retention bounds how far back it goes: what began before the first fact held is not there.

Exit status: 0 done, 1 failed, 3 that sequence is not held, 64 wrong command line, 130 interrupted.`,
		Example: `  landfall state line
  landfall state transfers --as-of 81234 --json
  landfall state fleet --as-of 2026-01-31T15:04:05Z
  landfall state sessions --from-file november.landfall`,
		Args: knownVerb,
		RunE: needsVerb,
	}
	c.SuggestionsMinimumDistance = 2
	for _, t := range topics() {
		c.AddCommand(f.verb(t))
	}
	return c
}

func (f *stateFlags) verb(t topic) *cobra.Command {
	c := &cobra.Command{
		Use: t.name, Short: "Show " + t.short, Args: exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c.Context(), t, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.add(c)
	f.addFile(c)
	c.Flags().StringVar(&f.asOf, "as-of", "", "the state `AT`: a length before now (10m), a sequence, or an RFC 3339 time")
	c.Flags().BoolVar(&f.json, "json", false, "one JSON object a line; the last one has kind \"end\"")
	return c
}

func (f *stateFlags) run(ctx context.Context, t topic, stdout, stderr io.Writer) error {
	m, err := parseMoment("as-of", f.asOf, t.bucket)
	if err != nil {
		return err
	}
	return f.reading(ctx, func(log history, o *opener) error {
		out := bufio.NewWriter(stdout)
		return errors.Join(showState(ctx, log, o, t, m, printer{w: out, json: f.json}, stderr), out.Flush())
	})
}

// reading opens what the flags name, and closes it again.
func (f *storeFlags) reading(ctx context.Context, use func(log history, o *opener) error) error {
	src, err := f.find(os.Getenv)
	if err != nil {
		return err
	}
	o, err := newOpener(src.secrets)
	if err != nil {
		return err
	}
	log, err := src.read(ctx)
	if err != nil {
		return err
	}
	return errors.Join(use(log, o), log.Close())
}

func parseMoment(flag, text string, b events.Bucket) (moment, error) {
	at, err := parseBound(flag, text)
	return moment{bucket: b, bound: at}, err
}

func showState(ctx context.Context, log history, o *opener, t topic, m moment, out printer, notes io.Writer) error {
	f, err := freeze(ctx, log, o, m)
	if err != nil {
		return err
	}
	fmt.Fprintln(notes, f.taken(t.bucket))
	if !out.json {
		fmt.Fprintln(out.w, t.header)
	}
	rows := t.rows(f)
	for _, r := range rows {
		if err := out.print(r); err != nil {
			return err
		}
	}
	if !out.json {
		return nil
	}
	return out.print(stateEnd{Kind: "end", State: t.name, Count: len(rows), At: f.At})
}

// taken says which state was shown.
func (f *frozen) taken(first events.Bucket) string {
	buckets := slices.Clone(viewBuckets)
	slices.SortStableFunc(buckets, func(a, b events.Bucket) int {
		return cmp.Compare(b2i(a != first), b2i(b != first))
	})
	parts := make([]string, len(buckets))
	for i, b := range buckets {
		parts[i] = fmt.Sprintf("%s %d", b, f.At[b].Seq)
	}
	return fmt.Sprintf("as of %s: %s", f.At[first].Time.UTC().Format(timeForm), strings.Join(parts, ", "))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

type stateEnd struct {
	Kind  string                       `json:"kind"`
	State string                       `json:"state"`
	Count int                          `json:"count"`
	At    map[events.Bucket]standpoint `json:"at"`
}

func (e stateEnd) String() string { return plural(e.Count, "row") }

// nameOf is a player's name as the log last gave it, else the beginning of the id.
func (f *frozen) nameOf(id events.PlayerID, request *events.Requested) string {
	if s, ok := f.Session(id); ok && s.Name != "" {
		return s.Name
	}
	if request != nil && request.Name != "" {
		return request.Name
	}
	return id.Short()
}

func (f *frozen) ago(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(f.At[events.Transfers].Time.Sub(t).Milliseconds(), 0)
}

const fleetHeader = "HOST                  KIND     STATE          PLAYERS    KEPT  OUT  AGE       WHAT"

type fleetRow struct {
	Kind    string              `json:"kind"` // backend or proxy
	ID      events.HostID       `json:"id"`
	Seq     uint64              `json:"seq"`
	AgeMs   int64               `json:"ageMs"`
	Control []string            `json:"control,omitempty"` // drained, evacuated, paused
	Backend *events.BackendBeat `json:"backend,omitempty"`
	Proxy   *events.ProxyBeat   `json:"proxy,omitempty"`
}

func (r fleetRow) entity() string { return r.Kind + " " + string(r.ID) }

func (r fleetRow) String() string {
	state, players, kept, out, what := "", "", "", "", ""
	if b := r.Backend; b != nil {
		state, players, kept, out = string(b.State), fmt.Sprintf("%d/%d", b.Players, b.MaxPlayers), fmt.Sprint(b.Kept()), fmt.Sprint(b.Outstanding)
		what = strings.TrimSpace(b.Adapter + " " + b.Game)
		if !b.Accepting {
			what += ", takes no arrivals"
		}
	}
	if p := r.Proxy; p != nil {
		state, players, out = string(p.State), fmt.Sprint(p.Players), fmt.Sprint(p.InFlight)
		what = fmt.Sprintf("folded %d", p.Folded)
	}
	what = strings.Join(append([]string{what}, r.Control...), ", ")
	return printable(strings.TrimRight(fmt.Sprintf("%-20s  %-7s  %-13s  %-9s  %4s  %3s  %-8s  %s", r.ID, r.Kind, state, players, kept, out, millis(r.AgeMs), what), " "))
}

func fleetRows(f *frozen) (out []stateRow) {
	fleet, controls := f.Fleet(), f.Controls()
	for _, b := range fleet.Backends {
		out = append(out, fleetRow{Kind: "backend", ID: b.Server, Seq: b.Seq, AgeMs: f.ago(b.Seen), Control: standing(controls, b.Server), Backend: &b.BackendBeat})
	}
	for _, p := range fleet.Proxies {
		out = append(out, fleetRow{Kind: "proxy", ID: p.Proxy, Seq: p.Seq, AgeMs: f.ago(p.Seen), Control: standing(controls, p.Proxy), Proxy: &p.ProxyBeat})
	}
	return out
}

// standing is what operators decided about a host.
func standing(c projections.Controls, id events.HostID) (out []string) {
	if c.Drained[id] != nil {
		out = append(out, "drained")
	}
	if c.Evacuated[id] != nil {
		out = append(out, "evacuated")
	}
	if c.Paused[events.PauseKey(events.PauseServer, string(id))] != nil {
		out = append(out, "paused")
	}
	return out
}

const lineHeader = "   POS     PLACE  PLAYER            WISH                      WAITS     ETA       WHERE"

type lineRow struct {
	Kind     string            `json:"kind"`
	Position int               `json:"position"` // in the lane, 1 is next
	Place    uint64            `json:"place"`
	Transfer events.TransferID `json:"transfer"`
	Player   events.PlayerID   `json:"player"`
	Name     string            `json:"name"`
	Wish     events.Wish       `json:"wish"` // the lane
	WaitedMs int64             `json:"waitedMs"`
	EtaMs    *int64            `json:"etaMs"` // null: unknown
	Server   events.HostID     `json:"server"`
	Online   bool              `json:"online"`
}

func (r lineRow) entity() string { return r.Transfer.String() }

func (r lineRow) String() string {
	eta, where := "unknown", string(r.Server)
	if r.EtaMs != nil {
		eta = millis(*r.EtaMs)
	}
	if !r.Online {
		where = strings.TrimSpace("away " + where)
	}
	return printable(fmt.Sprintf("%6d  %8d  %-16s  %-24s  %-8s  %-8s  %s", r.Position, r.Place, r.Name, describeWish(r.Wish), millis(r.WaitedMs), eta, where))
}

func lineRows(f *frozen) (out []stateRow) {
	now := f.At[events.Transfers].Time
	var queue []projections.Queued
	f.InOrder(func(q projections.Queued) bool {
		queue = append(queue, q)
		return true
	})
	for _, q := range queue {
		t := f.Player(q.Player).Active
		if t == nil {
			continue
		}
		r := lineRow{
			Kind: "waiting", Position: f.Position(q.Place), Place: q.Place, Transfer: q.Transfer, Player: q.Player, Name: f.nameOf(q.Player, t.Request),
			Wish: q.Wish, WaitedMs: f.ago(t.Seen.Requested), Server: q.Session.Server, Online: q.HasSession && q.Session.Open,
		}
		if eta, ok := f.ETA(q.Wish, r.Position, now); ok {
			r.EtaMs = new(eta.Milliseconds())
		}
		out = append(out, r)
	}
	return out
}

const sessionsHeader = "  NUMBER  PLAYER            SERVER                KIND    HOLDER                PROTOCOL"

type sessionRow struct {
	Kind    string          `json:"kind"`
	Player  events.PlayerID `json:"player"`
	Seq     uint64          `json:"seq"`
	Session events.Session  `json:"session"`
}

func (r sessionRow) entity() string { return r.Player.String() }

func (r sessionRow) String() string {
	s := r.Session
	return printable(fmt.Sprintf("%8d  %-16s  %-20s  %-6s  %-20s  %d", s.Number, s.Name, s.Server, s.Kind, s.Holder, s.Protocol))
}

func sessionRows(f *frozen) (out []stateRow) {
	for id, s := range f.Sessions() {
		if s.Open {
			out = append(out, sessionRow{Kind: "session", Player: id, Seq: s.Last, Session: s.Session})
		}
	}
	slices.SortFunc(out, func(a, b stateRow) int {
		return cmp.Compare(a.(sessionRow).Session.Number, b.(sessionRow).Session.Number)
	})
	return out
}

const transfersHeader = "   PLACE  TRANSFER                              PLAYER            PHASE      TOKEN  DESTINATION           AGE       FACTS"

type transferRow struct {
	Kind        string            `json:"kind"`
	Transfer    events.TransferID `json:"transfer"`
	Player      events.PlayerID   `json:"player"`
	Name        string            `json:"name"`
	Phase       projections.Phase `json:"phase"`
	Place       uint64            `json:"place"`
	Attempt     int               `json:"attempt"` // of the token that stands, 0: none
	Destination events.HostID     `json:"destination"`
	Region      string            `json:"region"`
	Claimer     events.HostID     `json:"claimer,omitempty"`
	AgeMs       int64             `json:"ageMs"`
	Facts       int               `json:"facts"`
	Last        uint64            `json:"last"`
	Request     *events.Requested `json:"request"`
}

func (r transferRow) entity() string { return r.Transfer.String() }

func (r transferRow) String() string {
	token := "-"
	if r.Attempt > 0 {
		token = fmt.Sprint(r.Attempt)
	}
	where := strings.TrimSpace(string(r.Destination) + " " + r.Region)
	return printable(fmt.Sprintf("%8d  %s  %-16s  %-9s  %5s  %-20s  %-8s  %d", r.Place, r.Transfer, r.Name, r.Phase, token, where, millis(r.AgeMs), r.Facts))
}

func transferRows(f *frozen) (out []stateRow) {
	active := f.Active()
	slices.SortFunc(active, func(a, b projections.Transfer) int { return cmp.Compare(a.Place, b.Place) })
	for _, t := range active {
		r := transferRow{
			Kind: "transfer", Transfer: t.ID, Player: t.Player, Name: f.nameOf(t.Player, t.Request), Phase: t.Phase, Place: t.Place,
			Attempt: t.Token.Attempt, Destination: t.Destination(), AgeMs: f.ago(t.Seen.Requested), Facts: t.Facts, Last: t.Last, Request: t.Request,
		}
		if t.Reserved != nil {
			r.Region = t.Reserved.Region
		}
		if t.Claim != nil {
			r.Claimer = t.Claim.Dispatcher
		}
		out = append(out, r)
	}
	return out
}

const controlHeader = "KEY                       WHAT"

type controlRow struct {
	Kind string      `json:"kind"`
	Key  string      `json:"key"`
	Fact events.Fact `json:"fact"`
}

func (r controlRow) entity() string { return r.Key }

func (r controlRow) String() string {
	return printable(fmt.Sprintf("%-24s  %s", r.Key, describe(r.Fact)))
}

func controlRows(f *frozen) (out []stateRow) {
	c := f.Controls()
	add := func(key string, fact events.Fact) {
		out = append(out, controlRow{Kind: "control", Key: key, Fact: fact})
	}
	if c.Killed {
		add(events.KillKey, c.Kill)
	}
	for id, d := range c.Drained {
		add(events.DrainKey(id), d)
	}
	for id, e := range c.Evacuated {
		add(events.EvacuateKey(id), e)
	}
	for key, p := range c.Paused {
		add(key, p)
	}
	if c.Config != nil && c.Config.Text != "" {
		add(events.ConfigKey, c.Config)
	}
	slices.SortFunc(out, func(a, b stateRow) int { return strings.Compare(a.entity(), b.entity()) })
	return out
}
