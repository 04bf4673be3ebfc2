package doctor

import (
	"fmt"
	"time"
)

// config: what the file says of itself.
func config(f *Facts) (out []Finding) {
	if f.Config == nil {
		return nil
	}
	for _, x := range f.Config.Faults {
		out = append(out, found(ConfigRefused, x.Where, "%s", x.Text))
	}
	if f.Config.Disabled {
		out = append(out, found(NetworkDisabled, f.Config.File, "network.enabled is false: a host opens nothing"))
	}
	return out
}

// secretCodes are the refusals of a secret that have a code of their own here.
var secretCodes = map[string]Code{"SECRET_MISSING": SecretMissing, "SECRET_PLACEHOLDER": SecretSample}

// soon is when a certificate had better be renewed.
const soon = 21 * 24 * time.Hour

func secret(f *Facts) (out []Finding) {
	if f.Secret == nil {
		return nil
	}
	if f.Secret.Code != "" {
		code, known := secretCodes[f.Secret.Code]
		if !known {
			code = SecretBad
		}
		out = append(out, found(code, "secret", "%s", f.Secret.Text))
	}
	for _, c := range f.Secret.Certificates {
		switch {
		case c.Fault != "":
			out = append(out, found(CertificateBad, c.Path, "%s", c.Fault))
		case c.Left < soon:
			out = append(out, found(CertificateEnds, c.Path, "expires in %s", days(c.Left)))
		}
	}
	for _, k := range f.Secret.Files {
		if k.Others {
			out = append(out, found(SecretReadable, k.Path, "others than its owner may read it"))
		}
	}
	return out
}

// settings: choices that are allowed and have a price.
func settings(f *Facts) (out []Finding) {
	c := f.Config
	if c == nil || len(c.Faults) > 0 {
		return nil
	}
	if c.Storage == "memory" {
		out = append(out, found(StorageMemory, c.File, "store.storage is memory: the log is gone when the store restarts"))
	} else if c.Durability == "lazy" {
		out = append(out, found(DurabilityLazy, c.File, "store.durability is lazy: a power cut takes what was acknowledged in the last two minutes"))
	}
	return out
}

const (
	mib = 1 << 20
	gib = 1 << 30
	// leastFree is what a disk should have left whatever the store may take.
	leastFree = gib
)

// filesystems are those on which a log does not belong.
var filesystems = map[string]Code{
	"tmpfs": StoreOnTmpfs, "ramfs": StoreOnTmpfs, "overlayfs": StoreInContainer,
	"nfs": StoreOnNetwork, "cifs": StoreOnNetwork, "smb2": StoreOnNetwork, "9p": StoreOnNetwork, "fuse": StoreOnNetwork, "ceph": StoreOnNetwork,
}

// disk: where the store lies, and whether it has room.
func disk(f *Facts) (out []Finding) {
	m := f.Machine
	if m == nil || !m.Carries || f.Config != nil && f.Config.Storage == "memory" {
		return nil
	}
	if code, bad := filesystems[m.Filesystem]; bad {
		out = append(out, found(code, m.Dir, "lies on %s", m.Filesystem))
	}
	used := f.used()
	switch limit := f.limit(); {
	case m.Free < leastFree:
		out = append(out, found(DiskFull, m.Dir, "%s are free", size(m.Free)))
	case limit > 0 && limit-used > m.Free:
		out = append(out, found(DiskSmall, m.Dir, "the store may still grow by %s, and %s are free", size(limit-used), size(m.Free)))
	}
	return out
}

func (f *Facts) limit() int64 {
	if f.Config == nil {
		return 0
	}
	return f.Config.MaxBytes
}

// used is what the log takes now.
func (f *Facts) used() (sum int64) {
	if f.Store == nil {
		return 0
	}
	for _, s := range f.Store.Streams {
		sum += int64(s.Bytes) //nolint:gosec // of a real disk
	}
	return sum
}

// shortSpan is too short to judge a pace by.
const shortSpan = time.Hour

// retention: whether what is written now fits the room until retention takes it out again.
func retention(f *Facts) (out []Finding) {
	if f.Store == nil || f.Store.Down != "" || f.Config == nil || f.Config.Storage == "memory" {
		return nil
	}
	used, room := f.used(), f.limit()
	if room == 0 && f.Machine != nil && f.Machine.Carries {
		room = (used + f.Machine.Free) / 2 // as it is settled when the store is opened
	}
	if room == 0 {
		return nil
	}
	if used >= room/5*4 {
		out = append(out, found(StoreFilling, f.Store.Where, "the log takes %s of %s", size(used), size(room)))
	}
	pace := 0.0 // bytes per second
	for _, s := range f.Store.Streams {
		if expires[s.Bucket] && s.Span >= shortSpan {
			pace += float64(s.Bytes) / s.Span.Seconds()
		}
	}
	if need := pace * f.Config.Retention.Seconds(); need > float64(room) {
		fits := time.Duration(float64(room) / pace * float64(time.Second))
		out = append(out, found(RetentionLong, f.Store.Where, "%s a day fill %s in %s; store.retention is %s: at most %s fit",
			size(int64(pace*86400)), size(room), days(fits), days(f.Config.Retention), days(fits)))
	}
	return out
}

const (
	// filesPerPlayer: two sockets, and a pipe of two ends for each direction.
	filesPerPlayer = 6
	enoughFiles    = 4096
)

// files: whether this process could hold a crowd.
func files(f *Facts) []Finding {
	m := f.Machine
	if m == nil || m.FilesNow == 0 || m.FilesNow >= enoughFiles || !m.Edge && !m.Carries {
		return nil
	}
	return []Finding{found(FilesLimited, "this machine", "a process here may open %d files (%d at most): enough for about %d players", m.FilesNow, m.FilesMost, (max(m.FilesNow, 256)-256)/filesPerPlayer)}
}

// rcon: the game server beside this host.
func rcon(f *Facts) (out []Finding) {
	r := f.RCON
	if r == nil {
		return nil
	}
	host := string(r.Host)
	for _, address := range r.Reached {
		out = append(out, found(RCONExposed, host, "RCON answers on %s", address))
	}
	if !r.Answers {
		out = append(out, found(RCONSilent, host, "nobody listens on %s", r.Address))
	}
	if r.Fault != "" {
		out = append(out, found(RCONPassword, host, "%s", r.Fault))
	}
	if r.Password != nil && r.Password.Others {
		out = append(out, found(SecretReadable, r.Password.Path, "others than its owner may read it"))
	}
	return out
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= gib:
		return fmt.Sprintf("%.1f GiB", float64(n)/gib)
	case n >= mib:
		return fmt.Sprintf("%.0f MiB", float64(n)/mib)
	}
	return fmt.Sprintf("%d KiB", max(n, 0)/1024)
}

// days is a length of time for people.
func days(d time.Duration) string {
	if d < 48*time.Hour {
		return fmt.Sprintf("%.0f hours", d.Hours())
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}
