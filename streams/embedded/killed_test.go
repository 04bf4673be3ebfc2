package embedded_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// Starts that were cut short, and starts beside another process (P18). The test binary plays
// the other process: see carry.

const (
	envCarry = "LANDFALL_TEST_CARRY" // the directory to carry
	envDie   = "LANDFALL_TEST_DIE"   // the point at which to die; empty: never
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(envCarry); dir != "" {
		if err := carry(context.Background(), dir, os.Getenv(envDie)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func carried(dir string) embedded.Config {
	return embedded.Config{Dir: dir, Network: "net", Creator: "up", MaxBytes: 2 << 30}
}

// carry opens the store in dir, writes one fact, says so, and then waits for the end of its
// input. It kills itself at a point: "opened", "stream N", "ensured".
func carry(ctx context.Context, dir, die string) error {
	srv, err := embedded.Open(ctx, carried(dir))
	if err != nil {
		return err
	}
	dieAt(die, "opened")
	c := srv.Connection()
	c.InProcess = &fuse{inner: c.InProcess, die: die}
	st, err := streams.Connect(ctx, c)
	if err != nil {
		return err
	}
	if err := st.Ensure(ctx); err != nil {
		return err
	}
	dieAt(die, "ensured")
	_, err = st.Append(ctx, events.Message{Bucket: events.Sessions, Key: "p", Header: events.Header{events.HeaderID: "carried"}, Body: []byte("x")})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "acknowledged")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, st.Close(), srv.Close())
}

// dieAt ends the process as kill -9 does.
func dieAt(die, here string) {
	if die == here {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // it takes a moment
	}
}

// fuse kills the process as soon as the request to make the n-th stream is on its way: the
// store is somewhere in the making of it.
type fuse struct {
	inner nats.InProcessConnProvider
	die   string
	made  atomic.Int64
}

func (f *fuse) InProcessConn() (net.Conn, error) {
	conn, err := f.inner.InProcessConn()
	return fusedConn{conn, f}, err
}

type fusedConn struct {
	net.Conn
	f *fuse
}

func (c fusedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	for range bytes.Count(b, []byte("$JS.API.STREAM.CREATE.")) {
		dieAt(c.f.die, fmt.Sprintf("stream %d", c.f.made.Add(1)))
	}
	return n, err
}

// program is the other process.
type program struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr bytes.Buffer
}

func launch(t *testing.T, dir, die string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{cmd: exec.CommandContext(t.Context(), self)}
	p.cmd.Env = append(os.Environ(), envCarry+"="+dir, envDie+"="+die)
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdout = bufio.NewReader(out)
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // fails when it has ended, as it should have
	return p
}

func (p *program) acknowledged(t *testing.T) {
	t.Helper()
	if line, err := p.stdout.ReadString('\n'); line != "acknowledged\n" {
		t.Fatalf("the other process said %q, %v: %s", line, err, p.stderr.String())
	}
}

// wantWorking opens the store here, in a directory where no process is left, and uses it.
func wantWorking(t *testing.T, dir string, want int) {
	t.Helper()
	srv, err := embedded.Open(t.Context(), carried(dir))
	if err != nil {
		t.Fatalf("the next start: %v", err)
	}
	st := ensured(t, srv)
	if n := count(t, st); n != want {
		t.Errorf("%d facts, want %d", n, want)
	}
	seq := put(t, st, "next", 0)
	if r, ok, err := st.Last(t.Context(), events.Sessions, "next"); err != nil || !ok || r.Seq != seq {
		t.Errorf("the next fact: %d %v %v", r.Seq, ok, err)
	}
	if err := errors.Join(st.Close(), srv.Close()); err != nil {
		t.Error(err)
	}
}

// TestKilledBeforeTheFirstFact (P18): wherever the first start on a directory is killed, the
// next one makes what is missing and works.
func TestKilledBeforeTheFirstFact(t *testing.T) {
	points := []string{"opened"}
	for i := range events.Buckets {
		points = append(points, fmt.Sprintf("stream %d", i+1))
	}
	for _, point := range append(points, "ensured") {
		t.Run(point, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			p := launch(t, dir, point)
			if line, err := p.stdout.ReadString('\n'); !errors.Is(err, io.EOF) {
				t.Fatalf("it got to say %q", line)
			}
			var exit *exec.ExitError
			if err := p.cmd.Wait(); !errors.As(err, &exit) || exit.Success() || exit.Exited() {
				t.Fatalf("it was to be killed: %v: %s", err, p.stderr.String())
			}
			wantWorking(t, dir, 0)
		})
	}
}

// TestHalfMadeDirectory (P18): what the file system can show after a kill between two steps
// that no test hits: nothing but a lock, half a file beside the real one, a stream of which
// only some files are there, and none of those that are made after it.
func TestHalfMadeDirectory(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "store")
	srv, err := embedded.Open(t.Context(), carried(whole))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ensured(t, srv).Close(), srv.Close()); err != nil {
		t.Fatal(err)
	}
	all := filepath.Join("jetstream", "$G", "streams")
	stream := filepath.Join(all, streams.StreamName(events.Sessions))
	// unmade is a directory while the stream of sessions is made, and of that one some files are missing.
	unmade := func(spoil func(dir string) error) func(dir string) error {
		return func(dir string) error {
			for _, b := range events.Buckets[slices.Index(events.Buckets, events.Sessions)+1:] {
				if err := os.RemoveAll(filepath.Join(dir, all, streams.StreamName(b))); err != nil {
					return err
				}
			}
			return spoil(dir)
		}
	}
	for name, spoil := range map[string]func(dir string) error{
		"nothing but a lock": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "jetstream")), os.Remove(filepath.Join(dir, "landfall.json")))
		},
		"half an owner": func(dir string) error {
			owner := filepath.Join(dir, "landfall.json")
			return errors.Join(os.RemoveAll(filepath.Join(dir, "jetstream")), os.Remove(owner), os.WriteFile(owner+".123", []byte(`{"netw`), 0o600))
		},
		"no server yet": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "jetstream")) },
		"a server without streams": func(dir string) error {
			return os.RemoveAll(filepath.Join(dir, "jetstream", "$G"))
		},
		"an empty stream": unmade(func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, stream)), os.Mkdir(filepath.Join(dir, stream), 0o700))
		}),
		"a stream without its description": unmade(func(dir string) error { return os.Remove(filepath.Join(dir, stream, "meta.inf")) }),
		"a stream without its checksum":    unmade(func(dir string) error { return os.Remove(filepath.Join(dir, stream, "meta.sum")) }),
		"an empty description":             unmade(func(dir string) error { return os.Truncate(filepath.Join(dir, stream, "meta.inf"), 0) }),
		"a stream without a place for facts": unmade(func(dir string) error {
			return os.RemoveAll(filepath.Join(dir, stream, "msgs"))
		}),
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			wantWorking(t, dir, 0)
		})
	}
}

// TestTwoProcesses (P18): the second process on a directory neither opens it nor
// harms it: `up` is refused, whoever reads connects to the first. A killed first leaves no lock.
func TestTwoProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	first := launch(t, dir, "")
	first.acknowledged(t)
	second := launch(t, dir, "")
	if line, err := second.stdout.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Errorf("the second said %q", line)
	}
	if err := second.cmd.Wait(); err == nil || !strings.Contains(second.stderr.String(), dir+": another process has this store open") {
		t.Errorf("the second: %v, %q", err, second.stderr.String())
	}
	reader, err := embedded.OpenDir(t.Context(), embedded.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if n := count(t, reader.Store); n != 1 || !reader.Shared() {
		t.Errorf("the reader sees %d facts, shared %v", n, reader.Shared())
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait() // it was killed
	wantWorking(t, dir, 1)
}

// TestLargeStoreOpens (P18): a store of 200,000 facts whose process was killed, so that
// nothing but the facts themselves is there to read, is whole and soon ready. (Operators have
// millions; that fills a disk for minutes and is measured by hand.)
func TestLargeStoreOpens(t *testing.T) {
	const facts = 200_000
	c := config(t)
	srv := open(t, c)
	st := ensured(t, srv)
	fill(t, srv, facts)
	before, err := st.Info(t.Context(), events.Transfers)
	if err != nil || before.Last != facts {
		t.Fatalf("filled to %+v, %v", before, err)
	}
	if err := errors.Join(st.Close(), srv.Close()); err != nil {
		t.Fatal(err)
	}
	forgetIndexes(t, c.Dir)
	began := time.Now()
	srv = open(t, c)
	t.Logf("opened after %s", time.Since(began))
	after, err := ensured(t, srv).Info(t.Context(), events.Transfers)
	if err != nil || after.Last != facts || after.First != 1 || after.Incarnation != before.Incarnation {
		t.Errorf("before %+v, after %+v, %v", before, after, err)
	}
}

// fill appends facts of many players without waiting for each: the store takes them in order.
func fill(t *testing.T, srv *embedded.Server, facts int) {
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
	body := make([]byte, 100)
	for i := range facts {
		subject := events.Transfers.Subject(fmt.Sprintf("player-%d.transfer", i/6))
		if i%2000 != 1999 && i != facts-1 {
			err = nc.Publish(subject, body)
		} else { // one acknowledgement for all before it
			_, err = js.Publish(t.Context(), subject, body)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// forgetIndexes removes what a server writes when it is stopped, and only then.
func forgetIndexes(t *testing.T, dir string) {
	t.Helper()
	removed := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "index.db" {
			removed++
			err = os.Remove(path)
		}
		return err
	})
	if err != nil || removed == 0 {
		t.Fatalf("%d indexes removed, %v", removed, err)
	}
}
