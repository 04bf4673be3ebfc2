package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
)

// describe tells a fact in one line.
func describe(f events.Fact) string {
	if f, ok := f.(events.TransferFact); ok {
		return describeTransfer(f)
	}
	switch f := f.(type) {
	case *events.SessionOpened:
		return "on " + describeSession(f.Session)
	case *events.SessionRefreshed:
		return "still on " + describeSession(f.Session)
	case *events.SessionClosed:
		return "was on " + describeSession(f.Session) + reason(": ", f.Reason)
	case *events.IdentitySet:
		return describeIdentity(f)
	case *events.KillSet:
		return fmt.Sprintf("transfers are switched %s by %s%s", onOff(!f.On), f.Who, reason(": ", f.Why))
	case *events.DrainSet:
		return fmt.Sprintf("drain of %s is %s, by %s%s", f.Host, onOff(f.On), f.Who, reason(": ", f.Why))
	case *events.PauseSet:
		return fmt.Sprintf("pause of %s is %s, by %s%s", strings.TrimSpace(string(f.What)+" "+f.Name), onOff(f.On), f.Who, reason(": ", f.Why))
	case *events.EvacuateSet:
		return describeEvacuation(f)
	case *events.ConfigSet:
		return describeConfig(f)
	case *events.RebuildSet:
		return describeRebuild(f)
	case *events.TokenSet:
		return describeToken(f)
	case *events.CooldownSet:
		return fmt.Sprintf("rests for %d s after %s%s", f.Seconds, f.Limit, reason(" on ", string(f.Server)))
	case *events.UsesCounted:
		return fmt.Sprintf("%d of %s today%s", f.Count, f.Limit, reason(" on ", string(f.Server)))
	case *events.PermitsKept:
		return fmt.Sprintf("%s answered for %d permissions", f.Server, len(f.Permits.Nodes))
	case *events.PlayerSeen:
		return fmt.Sprintf("%s was first seen on %s", f.Name, f.Server)
	case *events.RouteStaged:
		return fmt.Sprintf("may be followed to %s, hop %d", f.Server, f.Hops)
	case *events.RouteUsed:
		return fmt.Sprintf("led to %s: %s", f.Server, f.How)
	case *events.RoutesListed:
		return plural(len(f.Routes), "route")
	case *events.LoginHeld:
		return "came back, and waits in line for transfer " + f.Transfer.String()
	case *events.Checkpoint:
		return fmt.Sprintf("checkpoint %d seals %s, %d to %d: %.16s", f.Number, plural(f.Count, "fact"), f.From, f.To, f.Hash)
	case *events.Rejected:
		return describeRejected(f)
	case *events.BackendBeat:
		return fmt.Sprintf("%s, %d of %d players, %d kept, promise %d", f.State, f.Players, f.MaxPlayers, f.Kept(), f.Promise)
	case *events.InstanceBeat:
		return fmt.Sprintf("%s, %d of %d players, %d promised, %s", f.State, f.Players, f.MaxPlayers, f.Outstanding, plural(len(f.Zones), "zone"))
	case *events.ProxyBeat:
		drained := ""
		if f.Drained {
			drained = ", drained"
		}
		return fmt.Sprintf("%s%s, %d players, %d in flight, folded %d", f.State, drained, f.Players, f.InFlight, f.Folded)
	default:
		return ""
	}
}

func describeRebuild(f *events.RebuildSet) string {
	back := ""
	if f.Back {
		back = " again"
	}
	return fmt.Sprintf("%s is answered by %s%s (fold %d, transfers up to %d), in place of %s, by %s%s", f.View, f.File, back, f.Fold, f.At, f.Was, f.Who, reason(": ", f.Why))
}

func describeEvacuation(f *events.EvacuateSet) string {
	pace := ""
	if f.On {
		pace = fmt.Sprintf(", %g a second", f.PerSecond)
	}
	return fmt.Sprintf("evacuation of %s is %s%s, by %s%s", f.Host, onOff(f.On), pace, f.Who, reason(": ", f.Why))
}

func describeConfig(f *events.ConfigSet) string {
	if f.Text == "" {
		return fmt.Sprintf("each host's own file holds again, by %s%s", f.Who, reason(": ", f.Why))
	}
	return fmt.Sprintf("configuration of %d bytes pushed by %s%s", len(f.Text), f.Who, reason(": ", f.Why))
}

func describeToken(f *events.TokenSet) string {
	if f.Revoked {
		return fmt.Sprintf("API token %s of %s is revoked, by %s%s", f.ID, f.Name, f.Who, reason(": ", f.Why))
	}
	return fmt.Sprintf("API token %s of %s may %s until %s, by %s%s", f.ID, f.Name, joined(f.Scopes, ", "),
		time.Unix(f.Expires, 0).UTC().Format(time.RFC3339), f.Who, reason(": ", f.Why))
}

// joined is strings.Join of texts that have a type.
func joined[T ~string](list []T, sep string) string {
	var b strings.Builder
	for i, x := range list {
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(string(x))
	}
	return b.String()
}

func describeTransfer(f events.TransferFact) string {
	switch f := f.(type) {
	case *events.Requested:
		return fmt.Sprintf("%s wants %s (%s%s)", f.Name, describeWish(f.Wish), f.Trigger, reason(", from ", string(f.Origin)))
	case *events.Reserved:
		return fmt.Sprintf("token %d: %s %s at %s, for %s, promise %d", f.Attempt, f.Server, f.Region, describePosition(f.At), millis(f.TTLMs), f.Promise)
	case *events.Claimed:
		if f.From == "" {
			return fmt.Sprintf("token %d: %s lets the player in", f.Attempt, f.Dispatcher)
		}
		return fmt.Sprintf("token %d: %s moves the player away from %s", f.Attempt, f.Dispatcher, f.From)
	case *events.Transferred:
		return fmt.Sprintf("token %d: move by %s %s", f.Attempt, f.How, f.Result)
	case *events.Consumed:
		return fmt.Sprintf("token %d: arrived on %s", f.Attempt, f.Server)
	case *events.Completed:
		return fmt.Sprintf("token %d: stands at %s", f.Attempt, describePosition(f.At))
	case *events.Released:
		return fmt.Sprintf("token %d: given back, %s%s", f.Attempt, f.Reason, reason(": ", f.Detail))
	case *events.Expired:
		return fmt.Sprintf("token %d: %s", f.Attempt, f.Reason)
	case *events.Reopened:
		return fmt.Sprintf("token %d: claim %d taken back, claimer %s (last beat %d, silent for %s)", f.Attempt, f.Claim, f.Evidence, f.LastBeat, millis(f.SilenceMs))
	case *events.Waitlisted:
		return "nobody can serve this now: the player keeps the place in line"
	case *events.Failed:
		return string(f.Code) + reason(": ", f.Detail)
	case *events.Cancelled:
		return string(f.Code) + reason(": ", f.Detail)
	case *events.Superseded:
		return "by transfer " + f.By.String()
	}
	return ""
}

func describeWish(w events.Wish) string {
	var parts []string
	for _, p := range []struct{ name, value string }{{"region ", w.Region}, {"world ", w.World}, {"server ", string(w.Pin)}} {
		if p.value != "" {
			parts = append(parts, p.name+p.value)
		}
	}
	if len(parts) == 0 {
		return "any place"
	}
	return strings.Join(parts, ", ")
}

func describePosition(p events.Position) string {
	return fmt.Sprintf("%s %s %s in %s", number(p.X), number(p.Y), number(p.Z), p.World)
}

func describeSession(s events.Session) string {
	return fmt.Sprintf("%s as %s, held by %s %s", s.Server, s.Name, s.Kind, s.Holder)
}

func describeRejected(r *events.Rejected) string {
	text := fmt.Sprintf("%s: %s", r.Code, r.Subject)
	if r.At != 0 {
		text += fmt.Sprintf(" at %d", r.At)
	}
	return text + reason(": ", r.Detail)
}

// describeDecision tells a choice in one line; its scores are for explain.
func describeDecision(d events.Decision) string {
	text := "nobody qualifies"
	if len(d.Candidates) > 0 {
		best := d.Candidates[0]
		text = fmt.Sprintf("%s %s, best of %s", best.Server, best.Region, plural(len(d.Candidates), "candidate"))
	}
	for i, out := range d.Filtered {
		text += []string{"; ruled out: ", ", "}[min(i, 1)] + fmt.Sprintf("%d %s (%s)", out.Count, out.Code, strings.Join(out.Examples, " "))
	}
	if d.Collision != "" {
		text += "; the region means different worlds (" + d.Collision + ")"
	}
	return fmt.Sprintf("%s; snapshot %d, %d ms old, policy %s", text, d.Snapshot, d.AgeMs, d.Policy)
}

func reason(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func millis(ms int64) string { return number(float64(ms)/1000) + " s" }

// number has no exponent: coordinates are read off it.
func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// attemptOf is the token that a fact is about; ok is false for facts about the whole transfer.
func attemptOf(f events.Fact) (n int, ok bool) {
	switch f := f.(type) {
	case *events.Reserved:
		return f.Attempt, true
	case *events.Claimed:
		return f.Attempt, true
	case *events.Transferred:
		return f.Attempt, true
	case *events.Consumed:
		return f.Attempt, true
	case *events.Completed:
		return f.Attempt, true
	case *events.Released:
		return f.Attempt, true
	case *events.Expired:
		return f.Attempt, true
	case *events.Reopened:
		return f.Attempt, true
	default:
		return 0, false
	}
}

// decisionOf is the choice that a fact records, nil when it records none.
func decisionOf(f events.Fact) *events.Decision {
	switch f := f.(type) {
	case *events.Reserved:
		return &f.Decision
	case *events.Waitlisted:
		return &f.Decision
	case *events.Failed:
		return f.Decision
	default:
		return nil
	}
}

// hostsOf are the hosts that a fact names.
func hostsOf(f events.Fact) []events.HostID {
	switch f := f.(type) {
	case *events.Requested:
		return []events.HostID{f.Origin, f.Wish.Pin}
	case *events.Reserved:
		return []events.HostID{f.Server}
	case *events.Claimed:
		return []events.HostID{f.Dispatcher, f.From}
	case *events.Consumed:
		return []events.HostID{f.Server}
	case *events.SessionOpened:
		return []events.HostID{f.Session.Holder, f.Session.Server}
	case *events.SessionRefreshed:
		return []events.HostID{f.Session.Holder, f.Session.Server}
	case *events.SessionClosed:
		return []events.HostID{f.Session.Holder, f.Session.Server}
	case *events.DrainSet:
		return []events.HostID{f.Host}
	case *events.EvacuateSet:
		return []events.HostID{f.Host}
	case *events.PauseSet:
		if f.What == events.PauseServer {
			return []events.HostID{events.HostID(f.Name)}
		}
		return nil
	case *events.PlayerSeen:
		return []events.HostID{f.Server}
	case *events.RouteStaged:
		return []events.HostID{f.Server}
	case *events.RouteUsed:
		return []events.HostID{f.Server}
	default:
		return nil // beats name themselves as their source
	}
}
