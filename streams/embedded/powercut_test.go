//go:build powercut && linux

package embedded_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// Power cuts, tried: a store on a filesystem of its own, whose device is a file. What the
// filesystem has not written to its device is not in that file, so a copy of the file is
// what a cut leaves. The file lies on an XFS, where a copy is made in one instant while
// appends go on. Then the copy is mounted, a fresh server recovers from it, and everything
// must be there that was acknowledged as durable before the copy began. What the cache of a
// real device may lose on top of that is not tried: the copy has all that was handed to it.
//
// Needs root, loop devices and xfsprogs: go test -tags powercut -run PowerCut ./streams/embedded

// cuts of one life of a store, and how far apart they are.
const (
	cutsPerLife = 5
	cutEvery    = 500 * time.Millisecond
)

// The load: writers of keys of their own in transfers, whose messages expire, and writers of
// one key each in sessions, which rolls: blocks are filled, removed and compacted.
const (
	transferWriters = 12
	sessionWriters  = 4
	expiry          = 2 * time.Second
	history         = 64
	transferBody    = 10_000 // at most, and 500 more
	sessionBody     = 28_000
)

func TestPowerCut(t *testing.T) {
	disks := newDisks(t)
	for _, c := range []struct {
		filesystem string
		durability streams.Durability
		loses      bool
	}{
		{"ext4", streams.Grouped, false},
		{"xfs", streams.Grouped, false},
		{"btrfs", streams.Grouped, false},
		{"ext4", streams.Always, false},
		{"ext4", streams.Lazy, true}, // the check can fail
	} {
		t.Run(fmt.Sprintf("%s on %s", c.durability, c.filesystem), func(t *testing.T) {
			d := disks.make(t, c.filesystem)
			l := &ledger{}
			for life := range 2 {
				d.live(t, c.durability, l, life)
			}
			d.unmount(t)
			acknowledged, lost := 0, 0
			for _, cut := range d.cuts {
				n := d.recover(t, cut)
				acknowledged, lost = acknowledged+len(cut.before), lost+n
			}
			t.Logf("%d cuts, %d messages acknowledged before them, %d lost; blocks at the end: %s", len(d.cuts), acknowledged, lost, d.blocks)
			if c.loses != (lost > 0) {
				t.Errorf("%d of %d were lost", lost, acknowledged)
			}
		})
	}
}

// entry is an append that was acknowledged.
type entry struct {
	bucket events.Bucket
	key    string
	seq    uint64
	id     string
	sum    [sha256.Size]byte
	sent   time.Time
}

// ledger is what the writers were told.
type ledger struct {
	mu      sync.Mutex
	entries []entry
}

func (l *ledger) add(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
}

func (l *ledger) now() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.entries)
}

// disks are files on one XFS.
type disks struct {
	dir string
	n   int
}

func newDisks(t *testing.T) *disks {
	t.Helper()
	image := filepath.Join(t.TempDir(), "outer.img")
	command(t, "truncate", "-s", "16G", image)
	command(t, "mkfs.xfs", "-q", image)
	return &disks{dir: mount(t, image)}
}

// image is one filesystem, and what was copied of it.
type image struct {
	disks  *disks
	path   string
	dir    string // where it is mounted
	cuts   []cut
	blocks string
}

type cut struct {
	path   string
	before []entry // acknowledged before the copy began
	at     time.Time
}

func (d *disks) make(t *testing.T, filesystem string) *image {
	t.Helper()
	d.n++
	i := &image{disks: d, path: filepath.Join(d.dir, fmt.Sprintf("%d.img", d.n))}
	command(t, "truncate", "-s", "3G", i.path)
	command(t, "mkfs."+filesystem, "-q", i.path)
	i.dir = mount(t, i.path)
	return i
}

func mount(t *testing.T, image string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	command(t, "mount", "-o", "loop,nodiscard", image, dir)
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() }) // it may have been unmounted
	return dir
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

func (i *image) unmount(t *testing.T) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(i.dir, "store/jetstream/$G/streams/KV_*/msgs/*.blk"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if bucket := filepath.Base(filepath.Dir(filepath.Dir(path))); info.Size() > 0 {
			i.blocks += fmt.Sprintf(" %s/%s %d KiB", bucket, filepath.Base(path), info.Size()>>10)
		}
	}
	command(t, "umount", i.dir)
}

// cut copies the device as it is now.
func (i *image) cut(t *testing.T, l *ledger) {
	t.Helper()
	c := cut{path: fmt.Sprintf("%s.cut%d", i.path, len(i.cuts)), before: l.now()}
	if err := clone(i.path, c.path); err != nil {
		t.Fatalf("copy the device in one instant: %v", err)
	}
	c.at = time.Now()
	i.cuts = append(i.cuts, c)
}

// clone shares the extents of a file with a new one.
func clone(from, to string) error {
	const ficlone = 0x40049409
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, dst.Fd(), ficlone, src.Fd()); errno != 0 {
		return errno
	}
	return nil
}

func storeIn(dir string, d streams.Durability) embedded.Config {
	user, password := streams.Login(cutSecret, streams.RoleDispatcher, "remote")
	return embedded.Config{
		Dir: filepath.Join(dir, "store"), Network: "net", Creator: "up", MaxBytes: 1 << 30, Durability: d,
		Users: []embedded.User{{Role: streams.RoleDispatcher, ID: "remote", Name: user, Password: password}},
	}
}

var cutSecret = []byte("a secret of at least thirty-two bytes")

// live is one life of the store under load, with cuts at random moments. In the first one
// the first cut comes as soon as anything has been acknowledged.
func (i *image) live(t *testing.T, d streams.Durability, l *ledger, life int) {
	t.Helper()
	srv := open(t, storeIn(i.dir, d))
	st, err := streams.Connect(t.Context(), srv.Connection())
	if err != nil {
		t.Fatal(err)
	}
	if life == 0 {
		if err := st.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		expireSoon(t, srv)
	}
	remote := connectRemote(t, srv, d)
	ctx, stop := context.WithCancel(t.Context())
	first := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	write := func(n int, loop func(ctx context.Context, st *streams.Store, n int, told func(entry)) error) {
		conn := st
		if n%2 == 1 {
			conn = remote
		}
		wg.Go(func() {
			err := loop(ctx, conn, n, func(e entry) {
				l.add(e)
				once.Do(func() { close(first) })
			})
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	for n := range transferWriters {
		write(n, writeTransfers)
	}
	for n := range sessionWriters {
		write(n, writeSessions)
	}
	<-first
	for range cutsPerLife {
		if life > 0 || len(i.cuts) > 0 {
			wait(t, time.Duration(mathrand.Int64N(int64(2*cutEvery))))
		}
		i.cut(t, l)
	}
	stop()
	wg.Wait()
	if err := errors.Join(remote.Close(), st.Close(), srv.Close()); err != nil {
		t.Error(err)
	}
}

// wait is for a moment that nothing announces.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// expireSoon lets retention take blocks away while appends go on.
func expireSoon(t *testing.T, srv *embedded.Server) {
	t.Helper()
	c := srv.Connection()
	nc, err := nats.Connect("", nats.InProcessServer(c.InProcess), nats.UserInfo(c.User, c.Password), nats.CustomInboxPrefix(streams.InboxPrefix(c.Role, c.ID)))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), streams.StreamName(events.Transfers))
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.MaxAge, cfg.Duplicates = expiry, expiry
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

func connectRemote(t *testing.T, srv *embedded.Server, d streams.Durability) *streams.Store {
	t.Helper()
	c := streams.Config{URL: srv.URL(), Role: streams.RoleDispatcher, ID: "remote", Network: "net", Creator: "up", Durability: d}
	c.User, c.Password = streams.Login(cutSecret, c.Role, c.ID)
	st, err := streams.Connect(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func newMessage(b events.Bucket, key string, prev uint64, size int) (events.Message, entry) {
	body := make([]byte, 500+mathrand.IntN(size))
	_, _ = rand.Read(body)
	m := events.Message{Bucket: b, Key: key, Prev: prev, Header: events.Header{events.HeaderID: uuid.NewString()}, Body: body}
	return m, entry{bucket: b, key: key, id: m.Header[events.HeaderID], sum: sha256.Sum256(body), sent: time.Now()}
}

func writeTransfers(ctx context.Context, st *streams.Store, _ int, told func(entry)) error {
	for ctx.Err() == nil {
		m, e := newMessage(events.Transfers, uuid.NewString()+".t", 0, transferBody)
		var err error
		if e.seq, err = st.Append(ctx, m); err != nil {
			return err
		}
		told(e)
	}
	return nil
}

func sessionKey(n int) string { return fmt.Sprintf("player-%d", n) }

// writeSessions goes on behind what an earlier life may have left unheard.
func writeSessions(ctx context.Context, st *streams.Store, n int, told func(entry)) error {
	last, _, err := st.Last(ctx, events.Sessions, sessionKey(n))
	for err == nil && ctx.Err() == nil {
		m, e := newMessage(events.Sessions, sessionKey(n), last.Seq, sessionBody)
		if e.seq, err = st.Append(ctx, m); err == nil {
			last.Seq = e.seq
			told(e)
		}
	}
	return err
}

// recover opens the store in a copy and counts what is missing. It does so in a bubble, whose
// clock begins long before the messages were stored: nothing expires there.
func (i *image) recover(t *testing.T, c cut) (lost int) {
	t.Helper()
	dir := mount(t, c.path)
	have := map[events.Bucket]map[uint64]entry{}
	synctest.Test(t, func(t *testing.T) {
		cfg := storeIn(dir, streams.Lazy)
		cfg.NoListener = true
		srv, err := embedded.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		st, err := streams.Connect(t.Context(), srv.Connection())
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []events.Bucket{events.Transfers, events.Sessions} {
			have[b] = stored(t, st, b)
		}
		if err := errors.Join(st.Close(), srv.Close()); err != nil {
			t.Error(err)
		}
	})
	command(t, "umount", dir)
	for _, e := range c.before {
		got, found := have[e.bucket][e.seq]
		if found && (got.key != e.key || got.id != e.id || got.sum != e.sum) {
			t.Errorf("%s: %s %d is another message than was acknowledged", c.path, e.bucket, e.seq)
		}
		if !found && !c.mayBeGone(e, have[e.bucket]) {
			lost++
		}
	}
	return lost
}

func stored(t *testing.T, st *streams.Store, b events.Bucket) map[uint64]entry {
	t.Helper()
	out := map[uint64]entry{}
	for r, err := range st.History(t.Context(), b, streams.Range{}) {
		if err != nil {
			t.Logf("%s: %v", b, err) // the stream itself is lost
			return out
		}
		out[r.Seq] = entry{key: r.Key, id: r.Header[events.HeaderID], sum: sha256.Sum256(r.Body)}
	}
	return out
}

// mayBeGone tells what retention took: transfers that were old enough, and of a session what
// has enough behind it. Each writer has at most one behind that nobody had heard of yet.
func (c cut) mayBeGone(e entry, have map[uint64]entry) bool {
	if e.bucket == events.Transfers {
		return e.sent.Before(c.at.Add(-expiry))
	}
	newer := 0
	for seq, other := range have {
		if other.key == e.key && seq > e.seq {
			newer++
		}
	}
	return newer >= history-1
}
