package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/landfall/landfall/projections/archive"
)

// meter says how far a projection is: a bar on a terminal, lines elsewhere.
type meter struct {
	w    io.Writer
	bar  *progressbar.ProgressBar // nil: lines
	last archive.Progress
	at   time.Time
	rate float64 // facts a second, lately
}

func newMeter(w io.Writer) *meter {
	m := &meter{w: w, at: time.Now()}
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			m.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(w), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
				progressbar.OptionSetItsString("facts"), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		}
	}
	return m
}

// watch shows a projection until ctx ends.
func (m *meter) watch(ctx context.Context, p *archive.Projector) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if m.bar != nil {
				_ = m.bar.Finish()
			}
			return
		case <-tick.C:
			m.show(p.Progress(), time.Now())
		}
	}
}

func (m *meter) show(p archive.Progress, now time.Time) {
	m.rate = float64(p.Facts-m.last.Facts) / max(now.Sub(m.at).Seconds(), 1e-3)
	m.last, m.at = p, now
	line := progressLine(p, m.rate)
	if m.bar == nil {
		fmt.Fprintln(m.w, line)
		return
	}
	if m.bar.GetMax64() != int64(p.Target) { //nolint:gosec // a sequence
		m.bar.ChangeMax64(int64(p.Target)) //nolint:gosec // a sequence
	}
	m.bar.Describe(line)
	_ = m.bar.Set64(int64(p.Seq)) //nolint:gosec // a sequence
}

// progressLine is "transfers 412000 of 1000000 (41.2 %), 48210 facts/s, 12.3 s behind the log, 12 s to go".
func progressLine(p archive.Progress, rate float64) string {
	share := 100.0
	if p.Target > 0 {
		share = min(100*float64(p.Seq)/float64(p.Target), 100)
	}
	line := fmt.Sprintf("transfers %d of %d (%.1f %%), %.0f facts/s", p.Seq, p.Target, share, rate)
	if !p.Stored.IsZero() && p.Seq < p.Target {
		line += fmt.Sprintf(", %.1f s behind the log", max(p.Clock.Sub(p.Stored).Seconds(), 0))
	}
	if rate > 0 && p.Seq < p.Target {
		line += fmt.Sprintf(", %.0f s to go", float64(p.Target-p.Seq)/rate)
	}
	if p.Seq >= p.Target && !p.Live {
		line += ", making the indexes"
	}
	return line
}
