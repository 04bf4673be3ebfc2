package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sync/errgroup"
)

// onScreen shows frames on a terminal until the watcher is asked to end, by a key or by ctx. It
// closes store.
func (w *watcher) onScreen(ctx context.Context, store *reader, screen *os.File, terminal string, every time.Duration) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.follow(ctx, store) })
	group.Go(func() error {
		if terminal == "dumb" || terminal == "" {
			return w.scroll(ctx, screen, every)
		}
		return w.paint(ctx, screen, every)
	})
	return ignore(group.Wait(), errQuit)
}

// errQuit says that a key ended it.
var errQuit = errors.New("asked to quit")

// scroll writes one frame below the other, for a terminal that can do no more.
func (w *watcher) scroll(ctx context.Context, screen io.Writer, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for now := time.Now(); ; {
		if _, err := fmt.Fprintf(screen, "%s\n\n", topView(w.frame(now), topScreen{width: topWidth, height: topHeight - 1})); err != nil {
			return err
		}
		select {
		case now = <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// paint shows frames in the terminal's other screen, and leaves the terminal as it was.
func (w *watcher) paint(ctx context.Context, screen io.Writer, every time.Duration) error {
	m := topModel{next: w.frame, every: every, screen: topScreen{width: topWidth, height: topHeight, colour: true}}
	m.frame = w.frame(time.Now())
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithOutput(screen), tea.WithoutSignalHandler()).Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = errQuit
	}
	return err
}

// topModel is the screen as bubbletea drives it.
type topModel struct {
	next   func(now time.Time) topFrame
	every  time.Duration
	frame  topFrame
	screen topScreen
}

// topTick asks for the next frame.
type topTick time.Time

func (m topModel) tick() tea.Cmd {
	return tea.Tick(m.every, func(now time.Time) tea.Msg { return topTick(now) })
}

// Init implements tea.Model.
func (m topModel) Init() tea.Cmd { return m.tick() }

// Update implements tea.Model.
func (m topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case topTick:
		m.frame = m.next(time.Time(msg))
		return m, m.tick()
	case tea.WindowSizeMsg:
		m.screen.width, m.screen.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		if key := msg.String(); key == "q" || key == "ctrl+c" || key == "esc" {
			return m, tea.Quit
		}
	}
	return m, nil
}

// View implements tea.Model.
func (m topModel) View() tea.View {
	v := tea.NewView(topView(m.frame, m.screen))
	v.AltScreen, v.WindowTitle = true, "landfall top"
	return v
}
