package actors

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// RouterConfig makes a Router.
type RouterConfig struct {
	ID     events.HostID
	Log    projections.Log
	Keys   *events.Keyring
	Now    func() time.Time
	Logger *slog.Logger
	Timing Timing
}

// Router leads logins with a token where the log says that they were sent, and knows nothing of
// the others. It reads the log and writes nothing: it holds no players, chooses no
// destinations, does not beat, and nobody waits for it.
type Router struct {
	id     events.HostID
	logger *slog.Logger
	timing Timing
	view   *projections.View
	wakeup wakers
	open   openness
}

// NewRouter validates the configuration. It starts nothing.
func NewRouter(cfg RouterConfig) (*Router, error) {
	if cfg.Log == nil || cfg.Keys == nil || cfg.Now == nil || cfg.Logger == nil {
		return nil, errors.New("router: log, keys, clock and logger are mandatory")
	}
	r := &Router{id: cfg.ID, logger: cfg.Logger.With("router", cfg.ID), timing: cfg.Timing.WithDefaults()}
	r.wakeup.init()
	r.open.init()
	r.view = projections.NewView(projections.Config{
		Log: cfg.Log, Keys: cfg.Keys, Logger: r.logger, Now: cfg.Now, Changed: r.changed,
	})
	return r, nil
}

// View gives the router's folds, for reading.
func (r *Router) View() *projections.View { return r.view }

// Run follows the log until ctx ends or a fold cannot go on.
func (r *Router) Run(ctx context.Context) error { return r.view.Run(ctx) }

func (r *Router) changed(c projections.Change) {
	switch {
	case c.Bucket == events.Transfers && !c.Reset && !c.Live:
		r.wakeup.wake(c.Player)
	case c.Bucket == events.Control:
		r.open.set(r.view.Controls().Drained[r.id])
	}
}

// Drained is that of a Dispatcher.
func (r *Router) Drained() (drain *events.DrainSet, changed <-chan struct{}) { return r.open.now() }

// Route gives the server that a login's token leads to, or none. It may hold the login (up to
// LoginHold) for a token that the log does not show yet; one that it has seen is good while
// the log is away, too.
func (r *Router) Route(ctx context.Context, l Login) Route {
	if l.Token.IsZero() {
		return Route{}
	}
	var t projections.Transfer
	known := false
	shown := func() bool {
		t, known = r.view.Transfer(l.Token.Transfer)
		return known && claimShows(t, l.Token)
	}
	if r.view.Ready() {
		hold, cancel := context.WithTimeout(ctx, r.timing.LoginHold)
		defer cancel()
		r.wakeup.until(hold, l.Player, shown)
	} else {
		shown()
	}
	code := refuseToken(l, t, known)
	if code == "" && t.Phase != projections.Claimed && t.Phase != projections.Consumed {
		code = events.TokenSpent // only who dispatches may claim it anew
	}
	if code != "" {
		r.logger.Warn("token of a login is of no use", "code", code, "transfer", l.Token.Transfer.Short(), "player", l.Player)
		return Route{Code: code}
	}
	b := r.view.Fleet().Backend(t.Destination())
	if b == nil || b.Advertise == "" || slices.Contains(l.Failed, b.Server) {
		return Route{Code: events.Unreachable}
	}
	return Route{Server: b.Server, Address: b.Advertise}
}

// refuseToken says why the token of a login leads nowhere, "" when it leads somewhere. known
// tells that the log shows its transfer.
func refuseToken(l Login, t projections.Transfer, known bool) events.Code {
	switch {
	case !known:
		return events.TokenUnknown
	case t.Player != l.Player:
		return events.WrongPlayer
	case t.Phase.Terminal() || t.Token != l.Token:
		return events.TokenSpent
	}
	return ""
}
