package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/landfall/landfall/events"
)

// topScreen is where a frame is shown.
type topScreen struct {
	width  int
	height int // 0: as many lines as there are
	colour bool
}

// section is one list on the screen.
type section struct {
	title string
	none  string // what stands there when the list is empty
	rows  []string
}

// topView draws a frame. It is pure: the same frame on the same screen is the same text, whose
// lines are no longer and no more than the screen has.
func topView(f topFrame, s topScreen) string {
	lines := f.heading(s)
	sections := []section{f.fleetSection(s), f.lineSection(), f.transferSection(), f.failureSection(s)}
	room := s.height - len(lines) - len(sections)
	for i, n := range share(room, s.height == 0, sections) {
		lines = append(lines, s.bold(cut(sections[i].title, s.width)))
		lines = append(lines, sections[i].shown(n)...)
	}
	for i := range lines {
		lines[i] = cut(lines[i], s.width)
	}
	if s.height > 0 && len(lines) > s.height {
		lines = lines[:s.height]
	}
	return strings.Join(lines, "\n")
}

// heading says which store this is, whether it can be seen, and what goes on in it.
func (f topFrame) heading(s topScreen) []string {
	sight := "live"
	switch {
	case f.Stopped:
		sight = s.yellow("not running: as it was left")
	case f.Lost != "":
		sight = s.red(fmt.Sprintf("LOST for %s: %s", seconds(f.LostMs), printable(f.Lost)))
	}
	rates := "rates unknown yet"
	if f.Rates.OverMs > 0 {
		rates = fmt.Sprintf("facts %.1f/s  asked %.1f/s  arrived %.1f/s  failed %.1f/s", f.Rates.Facts, f.Rates.Requests, f.Rates.Arrivals, f.Rates.Failures)
	}
	lines := []string{
		fmt.Sprintf("%s  %s  transfers %d  %s", s.bold("landfall top"), sight, f.Last, printable(f.Store)),
		fmt.Sprintf("line %d  moving %d  %s", len(f.Line), len(f.Transfers), rates),
	}
	if len(f.Control) > 0 {
		keys := make([]string, len(f.Control))
		for i, c := range f.Control {
			keys[i] = c.Key
			if c.Key == events.KillKey {
				keys[i] = s.red("KILL SWITCH")
			}
		}
		lines = append(lines, "decided: "+strings.Join(keys, ", "))
	}
	return lines
}

func (f topFrame) fleetSection(s topScreen) section {
	out := section{title: "HOST                KIND     STATE          PLAYERS  KEPT  OUT  AGE     WHAT", none: "no host has beaten"}
	for _, r := range f.Fleet {
		text := topHost(r)
		if time.Duration(r.AgeMs)*time.Millisecond > topStale {
			text = s.yellow(text)
		}
		out.rows = append(out.rows, text)
	}
	return out
}

// topHost is a host in one line. One that has gone silent is called so, whatever it said last.
func topHost(r fleetRow) string {
	state, players, kept, outstanding := "", "", "", ""
	if b := r.Backend; b != nil {
		state, players, kept, outstanding = string(b.State), fmt.Sprintf("%d/%d", b.Players, b.MaxPlayers), fmt.Sprint(b.Kept()), fmt.Sprint(b.Outstanding)
	}
	if p := r.Proxy; p != nil {
		state, players, outstanding = string(p.State), fmt.Sprint(p.Players), fmt.Sprint(p.InFlight)
	}
	if time.Duration(r.AgeMs)*time.Millisecond > topStale {
		state = "SILENT"
	}
	return printable(strings.TrimRight(fmt.Sprintf("%-18s  %-7s  %-13s  %-7s  %4s  %3s  %-6s  %s",
		r.ID, r.Kind, state, players, kept, outstanding, seconds(r.AgeMs), strings.Join(r.Control, ", ")), " "))
}

func (f topFrame) lineSection() section {
	out := section{title: "IN LINE    PLAYER            WISH                WAITS   ETA      WHERE", none: "nobody waits"}
	for _, r := range f.Line {
		eta, where := "unknown", string(r.Server)
		if r.EtaMs != nil {
			eta = seconds(*r.EtaMs)
		}
		if !r.Online {
			where = strings.TrimSpace("away " + where)
		}
		out.rows = append(out.rows, printable(fmt.Sprintf("%7d    %-16s  %-18s  %-6s  %-7s  %s", r.Position, r.Name, cut(describeWish(r.Wish), 18), seconds(r.WaitedMs), eta, where)))
	}
	return out
}

func (f topFrame) transferSection() section {
	out := section{title: "UNDER WAY  PLAYER            PHASE      TOKEN  DESTINATION           AGE", none: "nobody is moving"}
	for _, r := range f.Transfers {
		token := "-"
		if r.Attempt > 0 {
			token = fmt.Sprint(r.Attempt)
		}
		out.rows = append(out.rows, printable(fmt.Sprintf("%-9s  %-16s  %-9s  %5s  %-20s  %s", r.Transfer.Short(), r.Name, r.Phase, token, r.Destination, seconds(r.AgeMs))))
	}
	return out
}

func (f topFrame) failureSection(s topScreen) section {
	out := section{title: "FAILED     PLAYER            CODE                    AGO     DETAIL", none: "nothing has failed of late"}
	for _, r := range f.Failures {
		text := printable(strings.TrimRight(fmt.Sprintf("%-9s  %-16s  %-22s  %-6s  %s", r.Transfer.Short(), r.Name, r.Code, seconds(f.Time.Sub(r.At).Milliseconds()), r.Detail), " "))
		out.rows = append(out.rows, s.red(text))
	}
	return out
}

// shown are n lines of a section; the last one says how many more there are.
func (x section) shown(n int) []string {
	if len(x.rows) == 0 {
		if n == 0 {
			return nil
		}
		return []string{x.none}
	}
	if len(x.rows) <= n {
		return x.rows
	}
	if n == 0 {
		return nil
	}
	return append(x.rows[:n-1:n-1], fmt.Sprintf("… and %d more", len(x.rows)-n+1))
}

// share gives each section its lines: as many as it wants, as long as there is room for all,
// else what is left goes to them in turns.
func share(room int, unbounded bool, sections []section) []int {
	wants, out := make([]int, len(sections)), make([]int, len(sections))
	for i, x := range sections {
		wants[i] = max(len(x.rows), 1)
	}
	if unbounded {
		return wants
	}
	for given := true; given && room > 0; {
		given = false
		for i := range sections {
			if room > 0 && out[i] < wants[i] {
				out[i]++
				room--
				given = true
			}
		}
	}
	return out
}

// seconds is a length in little room: 0.5s, 12s, 3m, 2h.
func seconds(ms int64) string {
	switch d := time.Duration(ms) * time.Millisecond; {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0fm", d.Minutes())
	default:
		return fmt.Sprintf("%.0fh", d.Hours())
	}
}

const (
	ansiReset  = "\x1b[0m"
	ansiBold   = "\x1b[1m"
	ansiRed    = "\x1b[31m"
	ansiYellow = "\x1b[33m"
)

func (s topScreen) bold(text string) string   { return s.paint(ansiBold, text) }
func (s topScreen) red(text string) string    { return s.paint(ansiRed, text) }
func (s topScreen) yellow(text string) string { return s.paint(ansiYellow, text) }

func (s topScreen) paint(how, text string) string {
	if !s.colour {
		return text
	}
	return how + text + ansiReset
}

// cut leaves as much of a line as a screen is wide. Colours take no room.
func cut(line string, width int) string {
	var out strings.Builder
	for used := 0; line != ""; {
		if strings.HasPrefix(line, "\x1b[") {
			end := strings.IndexByte(line, 'm') + 1
			out.WriteString(line[:end])
			line = line[end:]
			continue
		}
		_, size := utf8.DecodeRuneInString(line)
		if used < width {
			out.WriteString(line[:size])
		}
		used++
		line = line[size:]
	}
	return out.String()
}
