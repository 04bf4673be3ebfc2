package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

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
	state, players, kept, out, what, schema := "", "", "", "", "", events.SchemaVersion
	if b := r.Backend; b != nil {
		state, players, kept, out = string(b.State), fmt.Sprintf("%d/%d", b.Players, b.MaxPlayers), fmt.Sprint(b.Kept()), fmt.Sprint(b.Outstanding)
		what = strings.TrimSpace(b.Adapter + " " + b.Game)
		if !b.Accepting {
			what += ", takes no arrivals"
		}
		schema = b.Schema
	}
	if p := r.Proxy; p != nil {
		state, players, out = string(p.State), fmt.Sprint(p.Players), fmt.Sprint(p.InFlight)
		what = fmt.Sprintf("folded %d", p.Folded)
		schema = p.Schema
	}
	if refusal := events.CheckSchema(schema); refusal != nil {
		what += ", " + refusal.Error()
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
	for view, r := range c.Rebuilds {
		add(events.RebuildKey(view), r)
	}
	for id, t := range c.Tokens {
		add(events.APITokenKey(id), t)
	}
	slices.SortFunc(out, func(a, b stateRow) int { return strings.Compare(a.entity(), b.entity()) })
	return out
}
