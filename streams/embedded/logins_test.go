package embedded_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

func loginsOf(secret []byte) (out []embedded.User) {
	for _, x := range []struct {
		role streams.Role
		id   events.HostID
	}{{streams.RoleOperator, "cli"}, {streams.RoleAuditor, "cli"}, {streams.RoleDispatcher, "proxy-1"}, {streams.RoleBackend, "survival-1"}, {streams.RoleProgram, "api"}} {
		name, password := streams.Login(secret, x.role, x.id)
		out = append(out, embedded.User{Role: x.role, ID: x.id, Name: name, Password: password})
	}
	return out
}

// external starts a nats-server after a configuration that includes the logins.
func external(t *testing.T, sync string, users []embedded.User) *server.Server {
	t.Helper()
	return serverAfter(t, externalConfig(t, sync), users)
}

func externalConfig(t *testing.T, sync string) string {
	return "server_name: nats-1\nlisten: \"127.0.0.1:-1\"\ninclude \"landfall-logins.conf\"\n" +
		"jetstream { store_dir: \"" + filepath.Join(t.TempDir(), "store") + "\", sync_interval: " + sync + ", max_file_store: 2GB, max_memory_store: 1GB }\n"
}

// serverAfter starts a nats-server after a configuration, which may include the logins.
func serverAfter(t *testing.T, config string, users []embedded.User) *server.Server {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"landfall-logins.conf": embedded.Logins("net", users), "nats.conf": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opts, err := server.ProcessConfigFile(filepath.Join(dir, "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	opts.NoSigs, opts.NoLog = true, true
	ns, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() {
		ns.Shutdown()
		ns.WaitForShutdown()
	})
	if !ns.ReadyForConnections(30 * time.Second) {
		t.Fatal("the server is not ready")
	}
	return ns
}

func connectAs(t *testing.T, ns *server.Server, u embedded.User, carrier bool) *streams.Store {
	t.Helper()
	st, err := streams.Connect(t.Context(), streams.Config{
		URL: ns.ClientURL(), Role: u.Role, ID: u.ID, User: u.Name, Password: u.Password, Network: "net", Creator: "up", Carrier: carrier,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// TestLogins: a nats-server that includes them lets in who is listed, with the rights that
// the embedded store gives.
func TestLogins(t *testing.T) {
	users := loginsOf([]byte("a secret of thirty-two bytes, or more"))
	own, _, err := embedded.ServerUsers(users)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "logins.conf")
	if err := os.WriteFile(file, []byte(embedded.Logins("net", users)), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(opts.Users) != len(own) {
		t.Fatalf("%d logins, want %d", len(opts.Users), len(own))
	}
	for _, want := range own {
		i := slices.IndexFunc(opts.Users, func(u *server.User) bool { return u.Username == want.Username })
		if i < 0 {
			t.Errorf("no login %s", want.Username)
			continue
		}
		got := opts.Users[i]
		if got.Password != want.Password || got.Account.GetName() != "landfall-net" || !reflect.DeepEqual(got.Permissions, want.Permissions) {
			t.Errorf("%s: %+v, want %+v", want.Username, got.Permissions, want.Permissions)
		}
	}
}

// TestServersTellHowTheySync to the operator alone.
func TestServersTellHowTheySync(t *testing.T) {
	for sync, want := range map[string]streams.ServerInfo{
		"always":  {Name: "nats-1", Version: server.VERSION, Host: "127.0.0.1", Synced: true, SyncEvery: 2 * time.Minute},
		"\"30s\"": {Name: "nats-1", Version: server.VERSION, Host: "127.0.0.1", SyncEvery: 30 * time.Second},
	} {
		t.Run(sync, func(t *testing.T) {
			users := loginsOf([]byte("a secret of thirty-two bytes, or more"))
			ns := external(t, sync, users)
			st := connectAs(t, ns, users[0], true)
			if err := st.Ensure(t.Context()); err != nil {
				t.Fatal(err)
			}
			got, err := st.Servers(t.Context())
			if err != nil || !slices.Equal(got, []streams.ServerInfo{want}) || !st.Guarded() {
				t.Errorf("%+v, %v, guarded %v; want %+v, guarded", got, err, st.Guarded(), want)
			}
			dispatcher := connectAs(t, ns, users[2], false)
			if err := dispatcher.Ensure(t.Context()); err != nil {
				t.Error(err)
			}
			if got, err := dispatcher.Servers(t.Context()); len(got) > 0 || err != nil {
				t.Errorf("a dispatcher is told %+v, %v", got, err)
			}
		})
	}
}

// TestServersThatDoNotTell: a store whose account does not import the service.
func TestServersThatDoNotTell(t *testing.T) {
	srv := open(t, config(t))
	if got, err := ensured(t, srv).Servers(t.Context()); len(got) > 0 || err != nil {
		t.Errorf("told %+v, %v", got, err)
	}
}
