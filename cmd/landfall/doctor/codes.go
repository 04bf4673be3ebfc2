package doctor

// Severity is how bad a finding is.
type Severity string

// Severities. The worst one found is the exit status.
const (
	Note    Severity = "note"    // worth knowing
	Warning Severity = "warning" // works, and will hurt some day
	Error   Severity = "error"   // does not work, or is not safe
)

func (s Severity) rank() int {
	switch s {
	case Error:
		return 2
	case Warning:
		return 1
	case Note:
	}
	return 0
}

// Code is the stable name of what can be wrong.
type Code string

// Ailment is what a code means, and what helps.
type Ailment struct {
	Code     Code
	Severity Severity
	What     string
	Remedy   string
}

// Codes.
const (
	ConfigRefused    Code = "CONFIG_REFUSED"
	NetworkDisabled  Code = "NETWORK_DISABLED"
	SecretMissing    Code = "SECRET_MISSING"
	SecretBad        Code = "SECRET_BAD"
	SecretSample     Code = "SECRET_PLACEHOLDER"
	SecretReadable   Code = "SECRET_READABLE"
	CertificateBad   Code = "CERTIFICATE_BAD"
	CertificateEnds  Code = "CERTIFICATE_EXPIRES"
	DurabilityLazy   Code = "DURABILITY_LAZY"
	StorageMemory    Code = "STORAGE_MEMORY"
	StoreOnTmpfs     Code = "STORE_ON_TMPFS"
	StoreInContainer Code = "STORE_IN_CONTAINER"
	StoreOnNetwork   Code = "STORE_ON_NETWORK_DISK"
	DiskSmall        Code = "DISK_SMALL"
	DiskFull         Code = "DISK_FULL"
	StoreFilling     Code = "STORE_FILLING"
	RetentionLong    Code = "RETENTION_TOO_LONG"
	FilesLimited     Code = "FILES_LIMITED"
	RCONExposed      Code = "RCON_EXPOSED"
	RCONSilent       Code = "RCON_SILENT"
	RCONPassword     Code = "RCON_PASSWORD"
	StoreDown        Code = "STORE_DOWN"
	StoreRefuses     Code = "STORE_REFUSES_LOGIN"
	StoreOpen        Code = "STORE_OPEN"
	StoreOpenHere    Code = "STORE_OPEN_HERE"
	ServerOld        Code = "SERVER_VERSION_BAD"
	ServerRisky      Code = "SERVER_VERSION_RISKY"
	ServerLazy       Code = "SERVER_LAZY"
	ServersSilent    Code = "SERVERS_SILENT"
	StreamMissing    Code = "STREAM_MISSING"
	StreamForeign    Code = "STREAM_FOREIGN"
	StreamDrift      Code = "STREAM_DRIFT"
	DedupeShort      Code = "DUPLICATES_WINDOW"
	CopiesMissing    Code = "COPIES_MISSING"
	CopyLags         Code = "COPY_LAGS"
	CopiesTogether   Code = "COPIES_TOGETHER"
	LoginRefused     Code = "LOGIN_REFUSED"
	RightsWide       Code = "RIGHTS_TOO_WIDE"
	RightsNarrow     Code = "RIGHTS_TOO_NARROW"
	ReaderLags       Code = "READER_LAGS"
	ReaderRepeats    Code = "READER_REDELIVERED"
	ReaderUnknown    Code = "READER_UNKNOWN"
	ProjectorBehind  Code = "PROJECTOR_BEHIND"
	ProjectorStalled Code = "PROJECTOR_STALLED"
	WatcherMissing   Code = "WATCHER_MISSING"
	HostSilent       Code = "HOST_SILENT"
	HostUnseen       Code = "HOST_UNSEEN"
	HostDegraded     Code = "HOST_DEGRADED"
	HostUnlisted     Code = "HOST_UNLISTED"
	ClockOff         Code = "CLOCK_OFF"
	DuplicateID      Code = "DUPLICATE_ID"
	DuplicateAddress Code = "DUPLICATE_ADDRESS"
	ConfigDiffers    Code = "CONFIG_DIFFERS"
	HostBehind       Code = "HOST_BEHIND"
)

// Ailments are all of them, in the order in which they are looked for.
var Ailments = []Ailment{
	{ConfigRefused, Error, "network.yml, or a file it names, is refused", "mend the line; `landfall config check` lists all faults at once"},
	{NetworkDisabled, Note, "network.enabled is false: hosts open nothing", "set network.enabled: true when the network is to run"},
	{SecretMissing, Error, "the network's secret is not there: no host can sign or believe anything", "set $RTP_NET_SECRET, or security.secretFile; make one with: head -c 32 /dev/urandom | base64"},
	{SecretBad, Error, "the network's secret cannot be used", "replace it by Base64 of 32 random bytes: head -c 32 /dev/urandom | base64"},
	{SecretSample, Error, "the secret is a sample that everybody knows", "replace it by a random one: head -c 32 /dev/urandom | base64"},
	{SecretReadable, Warning, "a file with a secret can be read by others than its owner", "chmod 600 the file; replace the secret if strangers have an account here"},
	{CertificateBad, Error, "the certificate of the listeners cannot be used", "make it anew (`landfall init` makes what is missing), or renew it where it came from"},
	{CertificateEnds, Warning, "the certificate of the listeners expires within three weeks", "renew it: a running host takes the new files by itself"},
	{DurabilityLazy, Warning, "store.durability is lazy: a power cut takes facts that were acknowledged", "set store.durability: grouped (embedded), or sync_interval: always on servers of your own"},
	{StorageMemory, Warning, "store.storage is memory: the log is gone when the store restarts", "set store.storage: file, in a store of its own"},
	{StoreOnTmpfs, Error, "the store lies in memory (tmpfs): a restart of the machine takes the log", "put store.dir on a disk"},
	{StoreInContainer, Warning, "the store lies in a container's own layer: it goes with the container", "mount a volume and put store.dir there"},
	{StoreOnNetwork, Warning, "the store lies on a disk of another machine: locks and syncs may not hold there", "put store.dir on a local disk"},
	{DiskSmall, Warning, "the store may grow to more than the disk has room for", "set store.maxBytes below what is free, or free some"},
	{DiskFull, Error, "the disk of the store is all but full: soon no transfer can begin", "free some disk now; store.maxBytes keeps it from happening again"},
	{StoreFilling, Warning, "the log fills four fifths of store.maxBytes: when it is full, no transfer begins (LOG_FULL)", "raise store.maxBytes, or start a store with a shorter store.retention"},
	{RetentionLong, Warning, "at the pace of the last days the log outgrows its room before store.retention has passed", "raise store.maxBytes, or shorten store.retention to what fits"},
	{FilesLimited, Warning, "a process may open too few files: each player takes six", "raise the limit: LimitNOFILE=65536 in the unit of systemd, or ulimit -n"},
	{RCONExposed, Error, "RCON can be reached from other machines: whoever guesses the password owns the server, and it is sent in plain text", "bind the game server to 127.0.0.1 (server-ip), or close the port in the firewall of this machine"},
	{RCONSilent, Warning, "nothing answers on the game server's RCON", "start the game server, with enable-rcon=true and rcon.port as in network.yml"},
	{RCONPassword, Error, "the password of RCON cannot be used", "write the game server's rcon.password into the file that network.yml names"},
	{StoreDown, Error, "the store does not answer: nobody is transferred", "start the host that carries the store, or the nats-servers; look at store.url"},
	{StoreRefuses, Error, "the store does not let this login in", "use the network's own secret; on servers of your own include what `landfall config nats` prints, and reload"},
	{StoreOpen, Error, "the store lets in anybody, who may then empty the log", "give its servers the logins that `landfall config nats` prints"},
	{StoreOpenHere, Warning, "the store lets in anybody on this machine", "give its servers the logins that `landfall config nats` prints"},
	{ServerOld, Error, "a nats-server is of a version with known holes", "update it to 2.15.3 or later; at least 2.14.5, or 2.12.15"},
	{ServerRisky, Warning, "a nats-server is of a version that can lose acknowledged facts when its disk is compacted during a power cut", "update it to 2.15.3 or later"},
	{ServerLazy, Error, "a nats-server acknowledges before its disk has the fact", "set sync_interval: always on every server, or accept it with store.durability: lazy"},
	{ServersSilent, Note, "the nats-servers do not tell about themselves: how they sync was not seen", "use the accounts that `landfall config nats` prints"},
	{StreamMissing, Error, "a stream of the log does not exist", "start a host that dispatches (or carries the store): it makes what is missing"},
	{StreamForeign, Error, "a stream is not this network's", "set network.name right, or use another store"},
	{StreamDrift, Error, "a stream is not set up as network.yml says", "give all hosts the network.yml that the store was made with; look for who changed the stream"},
	{DedupeShort, Error, "a stream forgets ids too soon: an append repeated after a lost answer could land twice", "set its duplicates window back to 2 minutes"},
	{CopiesMissing, Error, "a stream has fewer copies in step than it should: one more failure stops the log", "bring the missing server back, and watch it catch up"},
	{CopyLags, Warning, "a copy of a stream is behind its leader", "look at the load and the disk of that server"},
	{CopiesTogether, Warning, "servers that hold copies of the log share a machine: it takes them all along when it fails", "run each nats-server on a machine of its own"},
	{LoginRefused, Error, "the store does not let in a host that network.yml lists", "print the logins again (`landfall config nats`) and reload the servers; restart the carrier with this network.yml"},
	{RightsWide, Error, "a login may do what its role must not", "replace the store's permissions by those that `landfall config nats` prints"},
	{RightsNarrow, Error, "a login may not do what its role needs", "replace the store's permissions by those that `landfall config nats` prints"},
	{ReaderLags, Warning, "somebody who reads the log is far behind its end", "look at the load of that host, and of its connection to the store"},
	{ReaderRepeats, Warning, "a reader was given records again: it does not confirm them in time", "no host of Landfall confirms anything: find out whose it is, and mend or remove it"},
	{ReaderUnknown, Note, "somebody reads the log who is no host of Landfall", "make sure that you know whose it is: it sees every player"},
	{ProjectorBehind, Warning, "a dispatcher is behind the log", "look at the load of that host"},
	{ProjectorStalled, Error, "a dispatcher does not follow the log any more: it decides nothing", "read its log for the sequence it stopped at; `landfall verify` looks at that record"},
	{WatcherMissing, Error, "a dispatcher that beats does not read a part of the log", "restart it, and keep its log: this should mend itself"},
	{HostSilent, Warning, "a host has stopped beating", "start it, or look why it cannot reach the store"},
	{HostUnseen, Note, "a host of network.yml has never been heard, as far as heartbeats reach back", "start it, or take it out of network.yml"},
	{HostDegraded, Warning, "a host says that it cannot do its work: its RCON is lost or no place is ready", "look at its game server, and at its own log"},
	{HostUnlisted, Warning, "a host beats that network.yml does not list", "give all hosts the same network.yml; a host that nobody knows has the secret"},
	{ClockOff, Warning, "a clock is seconds off the store's: nothing depends on it but what people read", "run a time service there (chrony, systemd-timesyncd)"},
	{DuplicateID, Warning, "a host began anew several times within minutes: two processes take one id from each other, or it crashes and is started again", "give each process an id of its own; the one that lost exits with 78, which a supervisor must not restart"},
	{DuplicateAddress, Error, "two backends name the same address: players for one arrive on the other", "give each its own advertise in network.yml"},
	{ConfigDiffers, Warning, "a host goes by another network.yml than this one", "give all hosts the same file and restart those that differ; `landfall config diff --network` names the keys"},
	{HostBehind, Warning, "a host writes an older wire format than this program", "update it: readers first, then writers"},
}

// Ailing gives what a code means.
func Ailing(c Code) (Ailment, bool) {
	for _, a := range Ailments {
		if a.Code == c {
			return a, true
		}
	}
	return Ailment{}, false
}
