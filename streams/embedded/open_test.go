package embedded_test

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

func config(t *testing.T) embedded.Config {
	t.Helper()
	return embedded.Config{Dir: t.TempDir(), Network: "net", Creator: "up", MaxBytes: 2 << 30, Durability: streams.Lazy}
}

func open(t *testing.T, c embedded.Config) *embedded.Server {
	t.Helper()
	srv, err := embedded.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	return srv
}

func ensured(t *testing.T, srv *embedded.Server) *streams.Store {
	t.Helper()
	st, err := streams.Connect(t.Context(), srv.Connection())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if err := st.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	return st
}

func put(t *testing.T, st *streams.Store, key string, prev uint64) uint64 {
	t.Helper()
	seq, err := st.Append(t.Context(), events.Message{Bucket: events.Sessions, Key: key, Prev: prev, Header: events.Header{events.HeaderID: uuid.NewString()}, Body: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func count(t *testing.T, st *streams.Store) (n int) {
	t.Helper()
	for _, err := range st.History(t.Context(), events.Sessions, streams.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestFactsSurviveAndTheOwnerIsRemembered(t *testing.T) {
	c := config(t)
	srv := open(t, c)
	st := ensured(t, srv)
	seq := put(t, st, "p", 0)
	before, err := st.Info(t.Context(), events.Sessions)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(st.Close(), srv.Close()); err != nil {
		t.Fatal(err)
	}
	c.Network, c.Creator = "", "" // a reader accepts what the directory says of itself
	srv = open(t, c)
	st = ensured(t, srv)
	after, err := st.Info(t.Context(), events.Sessions)
	if err != nil || after.Incarnation != before.Incarnation || after.Last != seq {
		t.Errorf("before %+v, after %+v %v", before, after, err)
	}
}

// TestSecondProcessConnects instead of opening: flock knows open files, not processes, so
// one process can play both.
func TestSecondProcessConnects(t *testing.T) {
	c := config(t)
	srv := open(t, c)
	st := ensured(t, srv)
	seq := put(t, st, "p", 0)
	if _, err := embedded.Open(t.Context(), c); !errors.Is(err, embedded.ErrLocked) || !strings.Contains(err.Error(), c.Dir) {
		t.Fatalf("second open: %v", err)
	}
	info, err := os.Stat(filepath.Join(c.Dir, "holder.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("holder.json: %v %v", info, err)
	}
	other, err := embedded.OpenDir(t.Context(), embedded.Config{Dir: c.Dir})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if !other.Shared() {
		t.Error("the directory was opened twice")
	}
	if n := count(t, other.Store); n != 1 {
		t.Errorf("the second process sees %d facts", n)
	}
	if got := put(t, other.Store, "p", seq); got != seq+1 {
		t.Errorf("sequence %d", got)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(st.Close(), srv.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "holder.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("holder.json after Close: %v", err)
	}
	alone, err := embedded.OpenDir(t.Context(), embedded.Config{Dir: c.Dir})
	if err != nil {
		t.Fatal(err)
	}
	if alone.Shared() || count(t, alone.Store) != 2 {
		t.Errorf("shared %v", alone.Shared())
	}
	if err := alone.Close(); err != nil {
		t.Error(err)
	}
}

// TestStaleHolderIsNotBelieved: a process that was killed leaves its file, but no lock.
func TestStaleHolderIsNotBelieved(t *testing.T) {
	c := config(t)
	srv := open(t, c)
	st := ensured(t, srv)
	put(t, st, "p", 0)
	if err := errors.Join(st.Close(), srv.Close()); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(embedded.Holder{URL: "nats://127.0.0.1:1", User: "x", Password: "y", PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "holder.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := embedded.OpenDir(t.Context(), embedded.Config{Dir: c.Dir})
	if err != nil {
		t.Fatal(err)
	}
	if o.Shared() || count(t, o.Store) != 1 {
		t.Errorf("shared %v", o.Shared())
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

func writeOwner(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "landfall.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRefusals: each in one line that names the thing and the remedy.
func TestRefusals(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, c *embedded.Config)
		want    string
	}{
		"another network": {func(t *testing.T, c *embedded.Config) {
			writeOwner(t, c.Dir, `{"network":"other","format":1,"creator":"up"}`)
		}, `belongs to network "other", not "net": set network.name`},
		"made by demo": {func(t *testing.T, c *embedded.Config) {
			writeOwner(t, c.Dir, `{"network":"net","format":1,"creator":"demo"}`)
		}, "made by `landfall demo`, not by `landfall up`"},
		"another format": {func(t *testing.T, c *embedded.Config) {
			writeOwner(t, c.Dir, `{"network":"net","format":2,"creator":"up"}`)
		}, "format version 2, this Landfall reads 1"},
		"garbage": {func(t *testing.T, c *embedded.Config) { writeOwner(t, c.Dir, `{`) }, "landfall.json"},
		"a foreign store": {func(t *testing.T, c *embedded.Config) {
			if err := os.Mkdir(filepath.Join(c.Dir, "jetstream"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "that Landfall did not make"},
		"port in use":            {func(_ *testing.T, c *embedded.Config) { c.Listen = busy.Addr().String() }, "cannot listen"},
		"no port":                {func(_ *testing.T, c *embedded.Config) { c.Listen = "127.0.0.1" }, "want host:port"},
		"open door without TLS":  {func(_ *testing.T, c *embedded.Config) { c.Listen = "0.0.0.0:0" }, "needs TLS"},
		"no room":                {func(_ *testing.T, c *embedded.Config) { c.MaxBytes = 1000 }, "too small"},
		"nothing to read":        {func(_ *testing.T, c *embedded.Config) { c.Network, c.Creator = "", "" }, "no Landfall store"},
		"a login without secret": {func(_ *testing.T, c *embedded.Config) { c.Users = []embedded.User{{Name: "x"}} }, `login "x"`},
		"directory is a file": {func(t *testing.T, c *embedded.Config) {
			c.Dir = filepath.Join(c.Dir, "file")
			if err := os.WriteFile(c.Dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "file"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t)
			c.prepare(t, &cfg)
			srv, err := embedded.Open(t.Context(), cfg)
			if err == nil {
				_ = srv.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want %q in one line", err, c.want)
			}
			if _, err := embedded.OpenDir(t.Context(), embedded.Config{Dir: filepath.Join(cfg.Dir, "absent")}); err == nil {
				t.Error("a directory that is not there was opened")
			}
		})
	}
}

// TestNothingIsLeftBehind: neither by a store that ran nor by one that could not.
func TestNothingIsLeftBehind(t *testing.T) {
	cycle := func() {
		c := config(t)
		srv := open(t, c)
		st := ensured(t, srv)
		put(t, st, "p", 0)
		if err := errors.Join(st.Close(), srv.Close()); err != nil {
			t.Fatal(err)
		}
		c.Network = "other"
		if _, err := embedded.Open(t.Context(), c); err == nil {
			t.Fatal("another network's directory was opened")
		}
	}
	cycle() // what the process starts once and for all
	before := runtime.NumGoroutine()
	for range 3 {
		cycle()
	}
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if now := runtime.NumGoroutine(); now > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before:\n%s", now, before, buf[:runtime.Stack(buf, true)])
	}
}

// TestOthersLogInOverTheListener with the login that both sides derive from the secret.
func TestOthersLogInOverTheListener(t *testing.T) {
	secret := []byte("a secret of at least thirty-two bytes")
	name, password := streams.Login(secret, streams.RoleDispatcher, "d1")
	c := config(t)
	c.Listen = "127.0.0.1:0"
	c.Users = []embedded.User{{Role: streams.RoleDispatcher, ID: "d1", Name: name, Password: password}}
	srv := open(t, c)
	put(t, ensured(t, srv), "p", 0)
	other := streams.Config{URL: srv.URL(), Role: streams.RoleDispatcher, ID: "d1", User: name, Password: password, Network: "net"}
	st, err := streams.Connect(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := st.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(t, st); n != 1 {
		t.Errorf("sees %d facts", n)
	}
	other.Password = "wrong"
	if _, err := streams.Connect(t.Context(), other); err == nil || !strings.Contains(err.Error(), "refused the login") {
		t.Errorf("wrong password: %v", err)
	}
	other.URL = "nats://127.0.0.1:1"
	if _, err := streams.Connect(t.Context(), other); err == nil || !strings.Contains(err.Error(), "nobody listens there") {
		t.Errorf("no listener: %v", err)
	}
}

// TestMemoryStoreForgets, and is made again with another incarnation, so that tails see it.
func TestMemoryStoreForgets(t *testing.T) {
	c := config(t)
	c.Storage = streams.Memory
	var lives []string
	for range 2 {
		srv := open(t, c)
		st := ensured(t, srv)
		state, err := st.Info(t.Context(), events.Sessions)
		if err != nil || state.Last != 0 {
			t.Fatalf("%+v %v", state, err)
		}
		lives = append(lives, state.Incarnation)
		put(t, st, "p", 0)
		if err := errors.Join(st.Close(), srv.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if lives[0] == lives[1] {
		t.Error("both lives of the stream have one incarnation")
	}
}
