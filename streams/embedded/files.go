package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/landfall/landfall/streams"
)

const (
	ownerFile  = "landfall.json"
	holderFile = "holder.json"
)

// owner says whose a directory is.
type owner struct {
	Network string `json:"network"`
	Format  int    `json:"format"`
	Creator string `json:"creator"`
}

// claimDir makes a directory ours, or checks that it is. dir must be locked. Empty fields
// of want accept what is there, but cannot make a directory.
func claimDir(dir string, want owner) (owner, error) {
	var got owner
	err := readJSON(filepath.Join(dir, ownerFile), &got)
	if errors.Is(err, os.ErrNotExist) {
		return firstClaim(dir, want)
	}
	if err != nil {
		return got, fmt.Errorf("store %s: %w", dir, err)
	}
	return got, got.check(dir, want)
}

func firstClaim(dir string, want owner) (owner, error) {
	if _, err := os.Stat(filepath.Join(dir, "jetstream")); err == nil {
		return want, fmt.Errorf("store %s: holds a JetStream store that Landfall did not make: use another directory", dir)
	}
	if want.Network == "" || want.Creator == "" {
		return want, fmt.Errorf("store %s: there is no Landfall store in this directory", dir)
	}
	want.Format = streams.FormatVersion
	return want, WriteJSON(filepath.Join(dir, ownerFile), want)
}

func (o owner) check(dir string, want owner) error {
	switch {
	case o.Format != streams.FormatVersion:
		return fmt.Errorf("store %s: has format version %d, this Landfall reads %d: use the matching version or another directory", dir, o.Format, streams.FormatVersion)
	case want.Network != "" && o.Network != want.Network:
		return fmt.Errorf("store %s: belongs to network %q, not %q: set network.name or use another directory", dir, o.Network, want.Network)
	case want.Creator != "" && o.Creator != want.Creator:
		return fmt.Errorf("store %s: was made by `landfall %s`, not by `landfall %s`: use another directory", dir, o.Creator, want.Creator)
	}
	return nil
}

// Holder is how another process of this machine reaches a store that is open.
type Holder struct {
	URL      string `json:"url"`
	User     string `json:"user"`
	Password string `json:"password"`
	Network  string `json:"network"`
	// Durability is what an append has to wait for.
	Durability streams.Durability `json:"durability"`
	PID        int                `json:"pid"`
}

func writeHolder(dir string, h Holder) error { return WriteJSON(filepath.Join(dir, holderFile), h) }

func readHolder(dir string) (h Holder, err error) {
	return h, readJSON(filepath.Join(dir, holderFile), &h)
}

func removeHolder(dir string) error {
	err := os.Remove(filepath.Join(dir, holderFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func readJSON(path string, into any) error {
	raw, err := os.ReadFile(path) //nolint:gosec // the operator names the directory
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// WriteJSON replaces a file in one step, readable by its owner alone, and on disk before
// it returns.
func WriteJSON(path string, v any) (err error) {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the operator names the directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
