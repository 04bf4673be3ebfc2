package embedded_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// keyed is a host with a key of its own.
func keyed(t *testing.T, role streams.Role, id events.HostID) (streams.HostKey, embedded.User) {
	t.Helper()
	k, err := streams.NewHostKey(role, id)
	if err != nil {
		t.Fatal(err)
	}
	return k, embedded.User{Role: role, ID: id, Key: k.Public()}
}

func dialKeyed(t *testing.T, url string, k streams.HostKey) (*streams.Store, error) {
	t.Helper()
	st, err := streams.Connect(t.Context(), streams.Config{URL: url, Role: k.Role, ID: k.ID, Key: &k, Network: "net"})
	if err == nil {
		t.Cleanup(func() { _ = st.Close() })
	}
	return st, err
}

// until waits for something that a connection finds out by itself.
func until(t *testing.T, what string, within time.Duration, come func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(within)
	for !come() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not within %s", what, within)
		}
	}
}

// TestKeysComeAndGo while the store runs: a new host gets in, a revoked one is cut at once and
// stays out, and nobody else's connection breaks.
func TestKeysComeAndGo(t *testing.T) {
	d1, u1 := keyed(t, streams.RoleDispatcher, "d1")
	d2, u2 := keyed(t, streams.RoleDispatcher, "d2")
	secret := []byte("a secret of at least thirty-two bytes")
	name, password := streams.Login(secret, streams.RoleDispatcher, "d3")
	u3 := embedded.User{Role: streams.RoleDispatcher, ID: "d3", Name: name, Password: password}
	c := config(t)
	c.Listen, c.Users = "127.0.0.1:0", []embedded.User{u1, u3}
	srv := open(t, c)
	put(t, ensured(t, srv), "p", 0)
	st1, err := dialKeyed(t, srv.URL(), d1)
	if err != nil {
		t.Fatal(err)
	}
	st3, err := streams.Connect(t.Context(), streams.Config{URL: srv.URL(), Role: streams.RoleDispatcher, ID: "d3", User: name, Password: password, Network: "net"})
	if err != nil {
		t.Fatal(err)
	}
	defer st3.Close()
	if _, err := dialKeyed(t, srv.URL(), d2); err == nil || !strings.Contains(err.Error(), "refused the key "+events.HostKeyID(d2.Raw())) {
		t.Fatalf("a stranger's key: %v", err)
	}
	if err := srv.SetUsers([]embedded.User{u1, u2, u3}); err != nil {
		t.Fatal(err)
	}
	st2, err := dialKeyed(t, srv.URL(), d2)
	if err != nil {
		t.Fatal(err)
	}
	seq := put(t, st1, "q", 0)

	began := time.Now()
	if err := srv.SetUsers([]embedded.User{u1, u3}); err != nil {
		t.Fatal(err)
	}
	until(t, "the revoked host is cut", time.Second, func() bool { return !st2.Connected() })
	t.Logf("cut after %s", time.Since(began))
	if put(t, st1, "q", seq); !st1.Connected() || !st3.Connected() {
		t.Error("another host was cut too")
	}
	for _, st := range []*streams.Store{st1, st3} {
		if n := st.Reconnects(); n != 0 {
			t.Errorf("another host's connection broke %d times", n)
		}
	}
	if _, err := dialKeyed(t, srv.URL(), d2); err == nil {
		t.Error("the revoked host came back")
	}
	if err := srv.SetUsers([]embedded.User{u1, u2, u3}); err != nil {
		t.Fatal(err)
	}
	until(t, "a host that may again comes back by itself", 20*time.Second, st2.Connected)
}

// TestHostKeyFiles: what is written is read again, for its owner alone; anything else is refused
// without a word of what it holds.
func TestHostKeyFiles(t *testing.T) {
	k, _ := keyed(t, streams.RoleBackend, "survival-1")
	text, err := k.Text()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "survival-1.nk")
	save := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save(string(text))
	if got, err := streams.ReadHostKey(path); err != nil || got.Role != k.Role || got.ID != k.ID || !got.Private.Equal(k.Private) {
		t.Errorf("%+v, %v", got, err)
	}
	public, err := streams.DecodePublic(k.Public())
	if err != nil || !public.Equal(k.Raw()) {
		t.Errorf("public half %s: %v", k.Public(), err)
	}
	seed := strings.Split(string(text), "\n")[2]
	for name, bad := range map[string]string{
		"empty": "", "cut": seed[:40], "changed": strings.Replace(seed, seed[20:22], "22", 1), "an account's": "SAAFYOZ5U4UBAAQGHBHRQEBTL7LZN5CE6PGSLZPBOLVHZHRJPZCRMTKQVU", "public": k.Public(),
	} {
		save(bad)
		_, err := streams.ReadHostKey(path)
		if err == nil || strings.Contains(err.Error(), seed[4:20]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := streams.DecodePublic(seed); err == nil {
		t.Error("a seed was taken for a public half")
	}
}
