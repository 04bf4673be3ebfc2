package doctor_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/cmd/landfall/doctor"
	"github.com/landfall/landfall/events"
)

const (
	gib  = int64(1 << 30)
	page = "../../../docs/doctor.md"
)

// healthy is a network of an edge and two backends on three servers, in which nothing is wrong.
func healthy() *doctor.Facts {
	f := &doctor.Facts{
		Config: &doctor.Config{
			File: "network.yml", Mode: "external", Storage: "file", Durability: "always", URL: "tls://a:4222", Retention: 720 * time.Hour,
			MaxBytes: 20 * gib, Stale: 3 * time.Second,
			Hosts: []doctor.Listed{
				{ID: "proxy-1", Dispatcher: true, Readers: []string{"landfall-dispatcher-proxy-1-"}},
				{ID: "survival-1", Backend: true, Advertise: "10.0.0.5:25566"}, {ID: "survival-2", Backend: true, Advertise: "10.0.0.6:25566"},
			},
		},
		Secret:  &doctor.Secret{Files: []doctor.Kept{{Path: "net.secret"}}},
		Machine: &doctor.Machine{Dir: "landfall-data", Filesystem: "ext4", Free: 100 * gib, Carries: true, FilesNow: 65536, FilesMost: 65536, Edge: true},
		RCON:    &doctor.RCON{Host: "survival-1", Address: "127.0.0.1:25576", Answers: true, Password: &doctor.Kept{Path: "survival-1.rcon"}},
		Store: &doctor.Store{
			Where: "tls://a:4222", Guarded: true, ClockSeen: true, ClockOff: 30 * time.Millisecond, Server: doctor.Server{Name: "nats-1", Version: "2.15.3"},
			Logins: []doctor.Login{{Name: "backend.survival-1"}},
		},
		Hosts: []doctor.Host{
			{ID: "proxy-1", Dispatcher: true, State: events.Ready, Age: 700 * time.Millisecond, Skew: -time.Second, Schema: events.SchemaVersion, Lives: 1},
			{ID: "survival-1", State: events.Ready, Advertise: "10.0.0.5:25566", Schema: events.SchemaVersion, Lives: 2},
			{ID: "survival-2", State: events.Ready, Advertise: "10.0.0.6:25566", Schema: events.SchemaVersion, Lives: 1},
		},
	}
	for i, name := range []string{"nats-1", "nats-2", "nats-3"} {
		f.Store.Servers = append(f.Store.Servers, doctor.Server{Name: name, Version: "2.15.3", Host: fmt.Sprintf("10.0.0.2%d", i), Synced: true})
	}
	for _, b := range events.Buckets {
		f.Store.Streams = append(f.Store.Streams, doctor.Stream{
			Bucket: b, Records: 1000, Bytes: 1 << 20, Span: 48 * time.Hour, Want: 3, Clustered: true, Leader: "nats-1",
			Copies:    []doctor.Copy{{Server: "nats-2", Current: true}, {Server: "nats-3", Current: true, Lag: 3}},
			Consumers: []doctor.Consumer{{Name: "landfall-dispatcher-proxy-1-x7", Waiting: 1}},
		})
	}
	return f
}

// ill is what is wrong with a network in one respect.
type ill struct {
	name  string
	harm  func(*doctor.Facts)
	wants []string // "CODE where: words"
}

// plague has every code at least once: TestEveryCodeIsFound.
var plague = []ill{
	{"nothing", func(*doctor.Facts) {}, nil},
	{"the file has faults", func(f *doctor.Facts) {
		f.Config.Faults = []doctor.Fault{{Where: "network.yml:3 line", Text: "is not one"}}
	}, []string{"CONFIG_REFUSED network.yml:3 line: is not one"}},
	{"disabled", func(f *doctor.Facts) { f.Config.Disabled = true }, []string{"NETWORK_DISABLED network.yml: "}},
	{"no secret", func(f *doctor.Facts) { f.Secret.Code, f.Secret.Text = "SECRET_MISSING", "is not set" }, []string{"SECRET_MISSING secret: is not set"}},
	{"a sample", func(f *doctor.Facts) { f.Secret.Code = "SECRET_PLACEHOLDER" }, []string{"SECRET_PLACEHOLDER secret: "}},
	{"a short secret", func(f *doctor.Facts) { f.Secret.Code = "SECRET_SHORT" }, []string{"SECRET_BAD secret: "}},
	{"everybody reads the secret", func(f *doctor.Facts) { f.Secret.Files[0].Others = true }, []string{"SECRET_READABLE net.secret: "}},
	{"everybody reads the password", func(f *doctor.Facts) { f.RCON.Password.Others = true }, []string{"SECRET_READABLE survival-1.rcon: "}},
	{"a certificate of somebody else's", func(f *doctor.Facts) {
		f.Secret.Certificates = []doctor.Certificate{{Path: "a.crt", Left: 90 * 24 * time.Hour}, {Path: "b.crt", Fault: "does not belong to its key"}, {Path: "c.crt", Left: 5 * 24 * time.Hour}}
	}, []string{"CERTIFICATE_BAD b.crt: does not", "CERTIFICATE_EXPIRES c.crt: expires in 5 days"}},
	{"lazy", func(f *doctor.Facts) { f.Config.Durability = "lazy" }, []string{"DURABILITY_LAZY network.yml: "}},
	{"in memory, where lazy and tmpfs mean nothing", func(f *doctor.Facts) {
		f.Config.Storage, f.Config.Durability, f.Machine.Filesystem = "memory", "lazy", "tmpfs"
	}, []string{"STORAGE_MEMORY network.yml: "}},
	{"on tmpfs", func(f *doctor.Facts) { f.Machine.Filesystem = "tmpfs" }, []string{"STORE_ON_TMPFS landfall-data: lies on tmpfs"}},
	{"on tmpfs, but the store is elsewhere", func(f *doctor.Facts) { f.Machine.Filesystem, f.Machine.Carries = "tmpfs", false }, nil},
	{"in a container", func(f *doctor.Facts) { f.Machine.Filesystem = "overlayfs" }, []string{"STORE_IN_CONTAINER landfall-data: lies on overlayfs"}},
	{"on another machine", func(f *doctor.Facts) { f.Machine.Filesystem = "nfs" }, []string{"STORE_ON_NETWORK_DISK landfall-data: lies on nfs"}},
	{"on a disk nobody knows", func(f *doctor.Facts) { f.Machine.Filesystem = "" }, nil},
	{"a disk that is full", func(f *doctor.Facts) { f.Machine.Free = 100 << 20 }, []string{"DISK_FULL landfall-data: 100 MiB are free"}},
	{"a disk that is too small", func(f *doctor.Facts) { f.Machine.Free = 5 * gib }, []string{"DISK_SMALL landfall-data: the store may still grow by 20.0 GiB, and 5.0 GiB are free"}},
	{"an old log", func(f *doctor.Facts) {
		f.Store.Streams[0].Bytes = uint64(17 * gib)
		f.Store.Streams[0].Span = 720 * time.Hour
	},
		[]string{"STORE_FILLING tls://a:4222: the log takes 17.0 GiB of 20.0 GiB"}},
	{"a busy log", func(f *doctor.Facts) { f.Store.Streams[0].Bytes = uint64(4 * gib) },
		[]string{"RETENTION_TOO_LONG tls://a:4222: 2.0 GiB a day fill 20.0 GiB in 10 days; store.retention is 30 days: at most 10 days fit"}},
	{"a busy log, for half an hour", func(f *doctor.Facts) {
		f.Store.Streams[0].Bytes, f.Store.Streams[0].Span = uint64(4*gib), 30*time.Minute
	}, nil},
	{"a busy log without a bound", func(f *doctor.Facts) {
		f.Store.Streams[0].Bytes, f.Config.MaxBytes, f.Machine.Free = uint64(4*gib), 0, 16*gib
	}, []string{"RETENTION_TOO_LONG tls://a:4222: 2.0 GiB a day fill 10.0 GiB in 5 days; store.retention is 30 days: at most 5 days fit"}},
	{"many heartbeats, which are bounded anyhow", func(f *doctor.Facts) { f.Store.Streams[5].Bytes = 256 << 20 }, nil},
	{"few files", func(f *doctor.Facts) { f.Machine.FilesNow = 1024 }, []string{"FILES_LIMITED this machine: a process here may open 1024 files (65536 at most): enough for about 128 players"}},
	{"few files, but nobody connects here", func(f *doctor.Facts) { f.Machine.FilesNow, f.Machine.Edge, f.Machine.Carries = 1024, false, false }, nil},
	{"RCON for all", func(f *doctor.Facts) { f.RCON.Reached = []string{"10.0.0.5:25576"} }, []string{"RCON_EXPOSED survival-1: RCON answers on 10.0.0.5:25576"}},
	{"no game server", func(f *doctor.Facts) { f.RCON.Answers = false }, []string{"RCON_SILENT survival-1: nobody listens on 127.0.0.1:25576"}},
	{"no password", func(f *doctor.Facts) { f.RCON.Fault, f.RCON.Password = "no such file", nil }, []string{"RCON_PASSWORD survival-1: no such file"}},
	{"the store is down: the rest of it is not judged", func(f *doctor.Facts) {
		f.Store.Down, f.Store.Guarded, f.Hosts[0].Age, f.Machine.Filesystem = "nobody listens there", false, time.Hour, "tmpfs"
	}, []string{"STORE_ON_TMPFS landfall-data: ", "STORE_DOWN tls://a:4222: nobody listens there"}},
	{"the store was opened to look at it", func(f *doctor.Facts) { f.Store.Stopped = true }, []string{"STORE_DOWN tls://a:4222: no process has it open"}},
	{"another secret", func(f *doctor.Facts) { f.Store.Down, f.Store.Refused = "refused the login", true }, []string{"STORE_REFUSES_LOGIN tls://a:4222: refused the login"}},
	{"an open store", func(f *doctor.Facts) { f.Store.Guarded = false }, []string{"STORE_OPEN tls://a:4222: whoever reaches it"}},
	{"an open store here", func(f *doctor.Facts) { f.Store.Guarded, f.Config.OnMachine = false, true }, []string{"STORE_OPEN_HERE tls://a:4222: whoever is on this machine"}},
	{"one lazy server", func(f *doctor.Facts) { f.Store.Servers[1].Synced, f.Store.Servers[1].Every = false, 2*time.Minute },
		[]string{"SERVER_LAZY server nats-2: writes to its disk every 2m0s"}},
	{"servers that do not tell", func(f *doctor.Facts) { f.Store.Servers = nil }, []string{"SERVERS_SILENT tls://a:4222: "}},
	{"a carrier's server has nothing to tell", func(f *doctor.Facts) { f.Store.Servers, f.Config.Mode = nil, "embedded" }, nil},
	{"no stream", func(f *doctor.Facts) {
		f.Store.Streams[1] = doctor.Stream{Bucket: events.Sessions, Missing: true, Want: 3}
	}, []string{"STREAM_MISSING sessions: "}},
	{"somebody else's", func(f *doctor.Facts) {
		f.Store.Streams[0].Foreign, f.Store.Streams[0].Drift = "belongs to x", []string{"y"}
	}, []string{"STREAM_FOREIGN transfers: belongs to x"}},
	{"changed", func(f *doctor.Facts) { f.Store.Streams[2].Drift = []string{"denyDelete is false, want true"} }, []string{"STREAM_DRIFT control: denyDelete is false, want true"}},
	{"a short memory of ids", func(f *doctor.Facts) { f.Store.Streams[0].DedupeShort = 10 * time.Second }, []string{"DUPLICATES_WINDOW transfers: it knows an id again for 10s"}},
	{"a server is away", func(f *doctor.Facts) { f.Store.Streams[0].Copies[1] = doctor.Copy{Server: "nats-3", Offline: true} },
		[]string{"COPIES_MISSING transfers: 2 of 3 copies are in step: nats-3 is away"}},
	{"nobody leads", func(f *doctor.Facts) {
		f.Store.Streams[0].Leader = ""
		f.Store.Streams[0].Copies[0].Current = false
	}, []string{"COPIES_MISSING transfers: 1 of 3 copies are in step: nats-2 is not in step"}},
	{"a copy is slow", func(f *doctor.Facts) { f.Store.Streams[0].Copies[0].Lag = 5000 }, []string{"COPY_LAGS transfers: nats-2 is 5000 operations behind nats-1"}},
	{"all on one machine", func(f *doctor.Facts) {
		f.Store.Servers[2].Host = f.Store.Servers[0].Host
	}, []string{"COPIES_TOGETHER 10.0.0.20: nats-1, nats-3 are there"}},
	{"servers that listen everywhere tell nothing", func(f *doctor.Facts) {
		for i := range f.Store.Servers {
			f.Store.Servers[i].Host = "0.0.0.0"
		}
	}, nil},
	{"a host is not let in", func(f *doctor.Facts) { f.Store.Logins[0].Refused = "refused the login" }, []string{"LOGIN_REFUSED backend.survival-1: refused the login"}},
	{"too much", func(f *doctor.Facts) { f.Store.Logins[0].Wide = []string{"append to transfers", "delete a stream"} },
		[]string{"RIGHTS_TOO_WIDE backend.survival-1: may append to transfers, delete a stream"}},
	{"too little", func(f *doctor.Facts) { f.Store.Logins[0].Narrow = []string{"write its own heartbeat"} }, []string{"RIGHTS_TOO_NARROW backend.survival-1: may not write its own heartbeat"}},
	{"a slow reader", func(f *doctor.Facts) { f.Store.Streams[0].Consumers[0].Pending = 20_000 }, []string{"READER_LAGS transfers: consumer landfall-dispatcher-proxy-1-x7 has 20000"}},
	{"a reader that repeats, of others", func(f *doctor.Facts) {
		f.Store.Streams[0].Consumers = append(f.Store.Streams[0].Consumers, doctor.Consumer{Name: "metrics", Redelivered: 4})
	}, []string{"READER_REDELIVERED transfers: consumer metrics was given 4", "READER_UNKNOWN transfers: consumer metrics"}},
	{"behind", func(f *doctor.Facts) { f.Hosts[0].Behind, f.Hosts[0].BehindFor = 40, 6*time.Second }, []string{"PROJECTOR_BEHIND proxy-1: has not folded 40 facts, the oldest is 6s old"}},
	{"a moment behind", func(f *doctor.Facts) { f.Hosts[0].Behind, f.Hosts[0].BehindFor = 40, time.Second }, nil},
	{"stopped", func(f *doctor.Facts) { f.Hosts[0].Behind, f.Hosts[0].BehindFor = 40, time.Minute }, []string{"PROJECTOR_STALLED proxy-1: has not folded 40 facts, the oldest is 1m0s old"}},
	{"a part of the log is not read", func(f *doctor.Facts) { f.Store.Streams[2].Consumers = nil }, []string{"WATCHER_MISSING proxy-1: does not read control"}},
	{"who reads cannot be seen", func(f *doctor.Facts) { f.Store.Streams[2].Consumers, f.Store.Streams[2].Hidden = nil, true }, nil},
	{"silence", func(f *doctor.Facts) { f.Hosts[0].Age = time.Hour }, []string{"HOST_SILENT proxy-1: was last heard 1h0m0s ago"}},
	{"who was stopped is not silent", func(f *doctor.Facts) { f.Hosts[0].Age, f.Hosts[0].State = time.Hour, events.ShuttingDown }, nil},
	{"never heard", func(f *doctor.Facts) { f.Hosts = f.Hosts[:2] }, []string{"HOST_UNSEEN survival-2: "}},
	{"RCON lost", func(f *doctor.Facts) { f.Hosts[1].State = events.Degraded }, []string{"HOST_DEGRADED survival-1: says DEGRADED"}},
	{"a stranger", func(f *doctor.Facts) { f.Config.Hosts = f.Config.Hosts[:2] }, []string{"HOST_UNLISTED survival-2: beats, and network.yml does not list it"}},
	{"clocks", func(f *doctor.Facts) { f.Hosts[0].Skew, f.Store.ClockOff = -time.Minute, 2500*time.Millisecond },
		[]string{"CLOCK_OFF this machine: its clock is 2.5s ahead", "CLOCK_OFF proxy-1: its clock is 1m0s behind"}},
	{"two of one id", func(f *doctor.Facts) { f.Hosts[1].Lives, f.Hosts[1].Within = 7, 2*time.Minute }, []string{"DUPLICATE_ID survival-1: began anew 7 times within 2m0s"}},
	{"two at one address", func(f *doctor.Facts) { f.Hosts[2].Advertise = f.Hosts[1].Advertise }, []string{"DUPLICATE_ADDRESS survival-2: names 10.0.0.5:25566, as survival-1 does"}},
	{"another file", func(f *doctor.Facts) { f.Hosts[1].Differs = []string{"line", "store"} }, []string{"CONFIG_DIFFERS survival-1: differs in line, store"}},
	{"an old host", func(f *doctor.Facts) { f.Hosts[1].Schema, f.Hosts[1].Version = 0, "v0.9.0" }, []string{"HOST_BEHIND survival-1: is v0.9.0 and writes format 0"}},
	{"an old server", func(f *doctor.Facts) { f.Store.Servers[0].Version = "2.12.14" }, []string{"SERVER_VERSION_BAD server nats-1: is 2.12.14"}},
	{"a risky server", func(f *doctor.Facts) { f.Store.Servers[0].Version = "2.14.6" }, []string{"SERVER_VERSION_RISKY server nats-1: is 2.14.6"}},
}

func TestExamine(t *testing.T) {
	for _, c := range plague {
		t.Run(c.name, func(t *testing.T) {
			f := healthy()
			c.harm(f)
			before := fmt.Sprintf("%+v", f)
			got := doctor.Examine(f)
			if len(got) != len(c.wants) {
				t.Fatalf("found %+v, want %q", got, c.wants)
			}
			for i, want := range c.wants {
				ailment, known := doctor.Ailing(got[i].Code)
				if text := fmt.Sprintf("%s %s: %s", got[i].Code, got[i].Where, got[i].Text); !strings.HasPrefix(text, want) {
					t.Errorf("found %q, want %q", text, want)
				}
				if !known || got[i].Severity != ailment.Severity || got[i].Remedy != ailment.Remedy {
					t.Errorf("%+v is not what the table says: %+v", got[i], ailment)
				}
			}
			if fmt.Sprintf("%+v", f) != before {
				t.Error("a check changed the facts")
			}
			if again := doctor.Examine(f); !reflect.DeepEqual(got, again) {
				t.Errorf("the same facts give %+v, and then %+v", got, again)
			}
		})
	}
}

// TestEveryCodeIsFound: a code that nothing leads to is a promise that is not kept.
func TestEveryCodeIsFound(t *testing.T) {
	found := map[doctor.Code]bool{}
	for _, c := range plague {
		f := healthy()
		c.harm(f)
		for _, x := range doctor.Examine(f) {
			found[x.Code] = true
		}
	}
	seen := map[doctor.Code]bool{}
	for _, a := range doctor.Ailments {
		if seen[a.Code] || a.What == "" || a.Remedy == "" || !slices.Contains([]doctor.Severity{doctor.Note, doctor.Warning, doctor.Error}, a.Severity) {
			t.Errorf("%+v: want a code of its own, a severity, what it is and what helps", a)
		}
		seen[a.Code] = true
		if !found[a.Code] {
			t.Errorf("nothing leads to %s", a.Code)
		}
	}
}

// TestNothingIsKnown: no check takes a fact for granted.
func TestNothingIsKnown(t *testing.T) {
	for name, f := range map[string]*doctor.Facts{
		"nothing at all": {},
		"a store alone":  {Store: &doctor.Store{Guarded: true}},
		"a file alone":   {Config: &doctor.Config{}},
		"no file":        {Store: healthy().Store, Hosts: healthy().Hosts, Machine: healthy().Machine},
	} {
		if got := doctor.Examine(f); len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestServerVersions(t *testing.T) {
	for version, want := range map[string]doctor.Code{
		"2.9.3": doctor.ServerOld, "2.11.15": doctor.ServerOld, "2.12.14": doctor.ServerOld, "2.12.15": doctor.ServerRisky, "2.12.16": doctor.ServerRisky,
		"2.14.0": doctor.ServerOld, "2.14.4": doctor.ServerOld, "2.14.5": doctor.ServerRisky, "v2.14.4-RC.1": doctor.ServerOld,
		"2.15.0": "", "2.15.3": "", "3.0.0": "", "": "", "devel": "", "2.15": "", "2.x.1": "",
	} {
		f := healthy()
		f.Store.Servers = nil
		f.Store.Server.Version, f.Config.Mode = version, "embedded"
		got := doctor.Examine(f)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0].Code != want) {
			t.Errorf("%q: %+v, want %q", version, got, want)
		}
	}
}

func TestTheWorstComesFirst(t *testing.T) {
	f := healthy()
	f.Hosts = f.Hosts[:2]
	f.RCON.Answers = false
	f.Store.Streams[2].Drift = []string{"x"}
	got := doctor.Examine(f)
	if len(got) != 3 || got[0].Severity != doctor.Error || got[1].Severity != doctor.Warning || got[2].Severity != doctor.Note || doctor.Worst(got) != doctor.Error {
		t.Errorf("%+v", got)
	}
	if doctor.Worst(nil) != "" || doctor.Worst(got[2:]) != doctor.Note {
		t.Error("the worst of nothing, or of a note")
	}
}
