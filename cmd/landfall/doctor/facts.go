// Package doctor says what is wrong with a network, its store and this machine. Checks are
// pure functions of facts that somebody else has gathered.
package doctor

import (
	"time"

	"github.com/landfall/landfall/events"
)

// Facts are what was found out. A part that is nil could not be looked at, and Unseen says why.
type Facts struct {
	Config  *Config
	Secret  *Secret
	Machine *Machine
	RCON    *RCON
	Store   *Store
	Hosts   []Host // by their heartbeats; meaningless without Store
	Unseen  []Unseen
}

// Unseen is something that was not looked at.
type Unseen struct {
	What string
	Why  string
}

// Config is the network's file.
type Config struct {
	File       string
	Faults     []Fault
	Disabled   bool
	Mode       string // store.mode
	Storage    string // store.storage
	Durability string // store.durability
	URL        string // store.url
	OnMachine  bool   // all of URL is on this machine
	Retention  time.Duration
	MaxBytes   int64 // 0: half of what was free
	Stale      time.Duration
	Hosts      []Listed
}

// Fault is why the file, or what belongs to it, is refused.
type Fault struct {
	Where string // "network.yml:3"
	Text  string
}

// Listed is a host of the file.
type Listed struct {
	ID         events.HostID
	Backend    bool
	Dispatcher bool
	Advertise  string   // "": no backend
	Readers    []string // beginnings of the names by which it reads the log
}

// Secret is the network's secret: never itself, only how it is kept.
type Secret struct {
	Code         string // of the refusal, as network.yml's page names them; "": it can be used
	Text         string // why it is refused
	Files        []Kept
	Certificates []Certificate
}

// Certificate is what a listener shows to prove who it is.
type Certificate struct {
	Path  string
	Fault string        // why it cannot be used; "": it can
	Left  time.Duration // until it expires
}

// Kept is a file with something secret in it.
type Kept struct {
	Path   string
	Others bool // others than its owner may read it
}

// Machine is the one this runs on.
type Machine struct {
	Dir        string // of the store, or of whatever is kept; "": nothing is kept here
	Filesystem string // "ext4", "tmpfs", "nfs" …; "": not known
	Free       int64  // bytes
	Carries    bool   // the store lies here
	FilesNow   uint64 // open files a process may have; 0: not known
	FilesMost  uint64 // what it may raise that to
	Edge       bool   // players connect to this host
}

// RCON is the way to the game server beside this host.
type RCON struct {
	Host     events.HostID
	Address  string
	Answers  bool
	Reached  []string // addresses off loopback on which it also answers
	Password *Kept    // nil: the file cannot be read
	Fault    string   // of the password
}

// Store is the log.
type Store struct {
	Where   string
	Down    string // why it cannot be reached; "": it was reached
	Refused bool   // it answers, and does not know our login
	Stopped bool   // it lies in a directory that no process has open

	Guarded   bool
	Server    Server   // the one we are connected to
	Servers   []Server // all that told about themselves
	ClockOff  time.Duration
	ClockSeen bool
	Streams   []Stream
	Logins    []Login
}

// Server is one nats-server of the store.
type Server struct {
	Name    string
	Version string
	Host    string
	Synced  bool
	Every   time.Duration
}

// Stream is one bucket's stream.
type Stream struct {
	Bucket      events.Bucket
	Missing     bool
	Foreign     string
	Drift       []string
	DedupeShort time.Duration
	Records     uint64
	Bytes       uint64
	Span        time.Duration // from its first record until now
	Want        int           // copies; 0: not compared
	Clustered   bool
	Leader      string
	Copies      []Copy
	Consumers   []Consumer
	Hidden      bool // who reads it could not be listed
}

// Copy is a copy on another server than the leader's.
type Copy struct {
	Server           string
	Current, Offline bool
	Lag              uint64
}

// Consumer is a reader of a stream.
type Consumer struct {
	Name        string
	Pending     uint64
	Redelivered int
	Waiting     int
}

// Login is what a role's login could do when it was tried.
type Login struct {
	Name    string // "backend.survival-1"
	Refused string // why it was not let in; "": it was
	Wide    []string
	Narrow  []string
}

// Host is what heartbeats tell of one.
type Host struct {
	ID         events.HostID
	Dispatcher bool // it also, or only, beats as a dispatcher
	State      events.HostState
	Age        time.Duration // of its last beat
	Skew       time.Duration // its clock ahead of the store's, and what the beat took
	Version    string
	Schema     int
	Advertise  string
	Lives      int           // how many began within Within
	Within     time.Duration // what was looked back on
	Behind     uint64        // dispatchers: facts of transfers it had not folded at its last beat
	BehindFor  time.Duration // and how old the oldest of them was then
	Differs    []string      // sections of its configuration that are not this file's
}
