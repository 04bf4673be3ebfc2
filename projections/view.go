package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/events"
)

// Tailer is a log that can be followed.
type Tailer interface {
	Tail(ctx context.Context, b events.Bucket, from events.TailStart, f events.Follower) error
}

// Log is what a View reads.
type Log interface {
	Tailer
	// LastOf gives the newest record of a key, as the log's leader knows it.
	LastOf(ctx context.Context, b events.Bucket, key string) (events.Record, bool, error)
}

// Config makes a View.
type Config struct {
	Log    Log
	Keys   *events.Keyring
	Logger *slog.Logger
	Now    func() time.Time // the process's clock
	// Stale is the silence after which a host counts as absent; nil: nobody is judged by it.
	Stale func() time.Duration
	// Retention is how long the log keeps a transfer's facts, 0: for ever.
	Retention time.Duration
	Changed   func(Change)  // called after each fold, from the tail's goroutine; must not block. May be nil.
	Problem   func(Problem) // called for each fact that was refused; must not block. May be nil.
}

// Change names what a fold has just taken in.
type Change struct {
	Bucket events.Bucket
	Player events.PlayerID // of transfers and sessions
	Seq    uint64
	Event  events.Event // zero after a Reset
	Reset  bool         // everything of the bucket was dropped and is being folded anew
	Live   bool         // the bucket has caught up, now or again
}

// Problem is a message that no fold took.
type Problem struct {
	Bucket  events.Bucket
	Key     string
	Seq     uint64
	Source  string
	Refusal *events.Refusal
}

// View folds the log for one process and answers reads. Reads are safe for concurrent use.
type View struct {
	cfg Config

	mu       sync.RWMutex
	journeys *Journeys
	sessions *Sessions
	pledges  *Pledges

	controls atomic.Pointer[Controls]
	fleet    atomic.Pointer[Fleet]

	transfersFeed, sessionsFeed, controlFeed, fleetFeed *feed
}

// NewView makes a View; Run fills it.
func NewView(cfg Config) *View {
	v := &View{cfg: cfg, journeys: NewJourneys(0), sessions: NewSessions(), pledges: NewPledges()}
	v.controls.Store(&Controls{})
	v.fleet.Store(&Fleet{})
	v.transfersFeed = newFeed(v, events.Transfers, transfersFold{v})
	v.sessionsFeed = newFeed(v, events.Sessions, &sessionsFold{v: v})
	v.controlFeed = newFeed(v, events.Control, &controlFold{v: v})
	v.fleetFeed = newFeed(v, events.Fleet, fleetFold{v})
	return v
}

// Run tails the log until ctx ends or a fold cannot go on (an unknown fact type, a key that
// cannot be verified). Waiters are released with the error.
func (v *View) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, f := range v.feeds() {
		g.Go(func() error { return f.run(ctx) })
	}
	return g.Wait()
}

func (v *View) feeds() []*feed {
	return []*feed{v.transfersFeed, v.sessionsFeed, v.controlFeed, v.fleetFeed}
}

// WaitLive blocks until every fold has caught up once with the end of its stream.
func (v *View) WaitLive(ctx context.Context) error {
	for _, f := range v.feeds() {
		if err := f.waitLive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Ready tells that every fold is caught up and connected.
func (v *View) Ready() bool {
	for _, f := range v.feeds() {
		if !f.isLive() {
			return false
		}
	}
	return true
}

// ErrFoldBucket is returned when a wait names a bucket this View does not fold.
var ErrFoldBucket = errors.New("bucket is not folded here")

// WaitFolded blocks until the fold of a bucket has taken in seq, or has failed.
func (v *View) WaitFolded(ctx context.Context, b events.Bucket, seq uint64) error {
	for _, f := range v.feeds() {
		if f.bucket == b {
			return f.waitFolded(ctx, seq)
		}
	}
	return fmt.Errorf("wait for %s %d: %w", b, seq, ErrFoldBucket)
}

// Folded is the last sequence of transfers that was folded.
func (v *View) Folded() uint64 { return v.transfersFeed.position() }

// Player gives one player's transfers.
func (v *View) Player(id events.PlayerID) Player {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.journeys.Player(id)
}

// Session gives one player's newest session.
func (v *View) Session(id events.PlayerID) (Session, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.sessions.Player(id)
}

// Transfer finds a transfer that is held, by its id.
func (v *View) Transfer(id events.TransferID) (Transfer, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	player, ok := v.journeys.Owner(id)
	if !ok {
		return Transfer{}, false
	}
	t := v.journeys.Player(player).Find(id)
	if t == nil {
		return Transfer{}, false
	}
	return *t, true
}

// Active lists the transfers under way, in no order.
func (v *View) Active() []Transfer {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.journeys.Active()
}

// Pledged counts the promises of a region that a heartbeat does not count yet.
func (v *View) Pledged(b *Backend, region string) int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.pledges.Count(&b.BackendBeat, region)
}

// Controls gives what operators decided.
func (v *View) Controls() Controls { return *v.controls.Load() }

// Fleet gives the snapshot: one atomic load.
func (v *View) Fleet() *Fleet { return v.fleet.Load() }

// Forget drops players without an active transfer whose last fact was seen before t, and
// promises of servers that never beat.
func (v *View) Forget(t time.Time) {
	fleet := v.Fleet()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.journeys.Forget(t)
	v.pledges.Keep(func(id events.HostID) bool { return fleet.Backend(id) != nil })
}

// Named gives the players on the network who go by a name, whatever its case.
func (v *View) Named(name string) []events.PlayerID {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var out []events.PlayerID
	for id, s := range v.sessions.All() {
		if s.Open && strings.EqualFold(s.Name, name) {
			out = append(out, id)
		}
	}
	return out
}

// Sessions gives every player's newest session.
func (v *View) Sessions() map[events.PlayerID]Session {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return maps.Clone(v.sessions.All())
}

// OpenOn gives the open sessions of the players on a server.
func (v *View) OpenOn(server events.HostID) map[events.PlayerID]Session {
	return v.openWhere(func(s *Session) bool { return s.Server == server })
}

// OpenSessions gives the open sessions that a holder holds.
func (v *View) OpenSessions(holder events.HostID) map[events.PlayerID]Session {
	return v.openWhere(func(s *Session) bool { return s.Holder == holder })
}

func (v *View) openWhere(fits func(*Session) bool) map[events.PlayerID]Session {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := map[events.PlayerID]Session{}
	for id, s := range v.sessions.All() {
		if s.Open && fits(&s) {
			out[id] = s
		}
	}
	return out
}
