package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Log is what a Keeper reads.
type Log interface {
	projections.Tailer
	LeaseLog
	Info(ctx context.Context, b events.Bucket) (events.StreamState, error)
}

// KeeperConfig makes a Keeper.
type KeeperConfig struct {
	Dir     Directory
	View    string // the archive's name in the log
	Network string
	Writer  string // who keeps it, for people
	Log     Log
	Keys    *events.Keyring
	Logger  *slog.Logger
	NewID   func() [16]byte
	Folding Folding // zero: Current
	// Look is how often it is looked whether an operator has switched. Default 1 s.
	Look time.Duration
	// Changed is told what is being kept, whenever that changes. May be nil.
	Changed func(Kept)
}

// Kept is what a Keeper keeps up with the log.
type Kept struct {
	Pointer

	Files []string // those that it writes, in no order
}

// Keeper keeps a directory's archive up with the log. When the file that answers is of another
// folding or of another log, it makes a new one beside it and leaves the old one to answer:
// switching is an operator's decision.
type Keeper struct{ cfg KeeperConfig }

// NewKeeper makes one. It starts nothing.
func NewKeeper(cfg KeeperConfig) *Keeper {
	if cfg.Folding.Fold == nil {
		cfg.Folding = Current
	}
	if cfg.Look == 0 {
		cfg.Look = time.Second
	}
	if cfg.Changed == nil {
		cfg.Changed = func(Kept) {}
	}
	return &Keeper{cfg: cfg}
}

// Run keeps the archive until ctx ends, whose error it returns. Whatever fails is tried again,
// with growing pauses: players are moved without an archive too.
func (k *Keeper) Run(ctx context.Context) error {
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxInterval(30*time.Second), backoff.WithMaxElapsedTime(0))
	return backoff.RetryNotify(func() error {
		began := time.Now()
		err := k.keep(ctx)
		switch {
		case ctx.Err() != nil:
			return backoff.Permanent(ctx.Err())
		case time.Since(began) > time.Minute:
			pauses.Reset()
		}
		return err
	}, backoff.WithContext(pauses, ctx), func(err error, pause time.Duration) {
		if !errors.Is(err, errSwitched) {
			k.cfg.Logger.Error("the archive is not kept up", "dir", string(k.cfg.Dir), "error", err, "again", pause.Round(time.Millisecond))
		}
	})
}

// errSwitched ends a round: somebody has changed which file is which.
var errSwitched = errors.New("the pointer changed")

// keep is one round: as long as the same files are to be written.
func (k *Keeper) keep(ctx context.Context) error {
	state, err := k.cfg.Log.Info(ctx, events.Transfers)
	if err != nil {
		return err
	}
	id := Identity{Network: k.cfg.Network, Incarnation: state.Incarnation, Fold: k.cfg.Folding.Version}
	p, files, err := k.prepare(ctx, id)
	if err != nil {
		return err
	}
	k.cfg.Changed(Kept{Pointer: p, Files: files})
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range files {
		group.Go(func() error { return k.project(ctx, name) })
	}
	group.Go(func() error { return k.watch(ctx, p) })
	return group.Wait()
}

// prepare says which files are to be written, and makes one when there is none.
func (k *Keeper) prepare(ctx context.Context, id Identity) (Pointer, []string, error) {
	p, err := k.cfg.Dir.Pointer()
	if errors.Is(err, ErrNone) {
		p = Pointer{View: k.cfg.View, Network: k.cfg.Network}
		if p.Live, err = k.cfg.Dir.Make(ctx, id); err == nil {
			err = k.cfg.Dir.Point(p)
		}
		return p, []string{p.Live}, err
	}
	if err != nil {
		return p, nil, err
	}
	if p.Network != k.cfg.Network {
		return p, nil, fmt.Errorf("%s holds the archive of network %q, this is %q: give this one a directory of its own", k.cfg.Dir, p.Network, k.cfg.Network)
	}
	var files []string
	for _, name := range []string{p.Live, p.Shadow} {
		if name == "" {
			continue
		}
		got, err := k.cfg.Dir.Identity(ctx, name)
		if err != nil {
			return p, nil, err // never made anew because it cannot be read
		}
		if got == id {
			files = append(files, name)
		}
	}
	if len(files) > 0 {
		return p, files, nil
	}
	if p.Shadow, err = k.cfg.Dir.Make(ctx, id); err != nil {
		return p, nil, err
	}
	k.cfg.Logger.Warn("the archive is of another folding or of another log: making it anew beside the one that answers",
		"dir", string(k.cfg.Dir), "answers", p.Live, "fold", id.Fold, "new", p.Shadow)
	return p, []string{p.Shadow}, k.cfg.Dir.Point(p)
}

// project writes one file until ctx ends, or it cannot. It waits while another process writes it.
func (k *Keeper) project(ctx context.Context, name string) error {
	lease, err := k.acquire(ctx, name)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return lease.Hold(ctx) })
	group.Go(func() error { return k.write(ctx, name) })
	return group.Wait()
}

// acquire waits until nobody else writes a file.
func (k *Keeper) acquire(ctx context.Context, name string) (*Lease, error) {
	look := time.NewTicker(k.cfg.Look)
	defer look.Stop()
	for said := false; ; {
		l, err := Acquire(ctx, k.cfg.Log, LeaseKey(k.cfg.View, name), k.cfg.Writer, k.cfg.NewID)
		var held *HeldError
		if !errors.As(err, &held) {
			return l, err
		}
		if !said {
			k.cfg.Logger.Info("waiting for who writes the archive now", "file", name, "holder", held.Holder)
			said = true
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (k *Keeper) write(ctx context.Context, name string) error {
	f, err := Open(ctx, k.cfg.Dir.File(name), k.cfg.Writer)
	if err != nil {
		return err
	}
	p := NewProjector(f, Config{Log: k.cfg.Log, Keys: k.cfg.Keys, Folding: k.cfg.Folding, Logger: k.cfg.Logger})
	err = p.Run(ctx)
	if errors.Is(err, ErrForked) {
		err = errors.Join(err, f.disown(context.WithoutCancel(ctx)))
	}
	if err == nil {
		err = ctx.Err()
	}
	return errors.Join(err, f.Close())
}

// watch ends when the pointer is another one.
func (k *Keeper) watch(ctx context.Context, was Pointer) error {
	look := time.NewTicker(k.cfg.Look)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
		now, err := k.cfg.Dir.Pointer()
		if err != nil {
			return err
		}
		if now != was {
			return errSwitched
		}
	}
}

// Identity reads what a generation is made of.
func (d Directory) Identity(ctx context.Context, name string) (Identity, error) {
	r, err := OpenReader(ctx, d.File(name))
	if errors.Is(err, fs.ErrNotExist) {
		return Identity{}, fmt.Errorf("%w: %s names it", err, d.File(pointerFile))
	}
	if err != nil {
		return Identity{}, err
	}
	return r.Identity, r.Close()
}

// disown notes that the log has become another one: nothing is written to the file any more.
func (f *File) disown(ctx context.Context) error {
	_, err := f.db.ExecContext(ctx, "UPDATE archive SET incarnation = incarnation || ' (forked)' WHERE epoch = ?", f.epoch)
	return err
}
