package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// pointerFile names, inside a directory, the file that answers.
const pointerFile = "archive.json"

// Directory is where the generations of one archive lie.
type Directory string

// Pointer says which file is which. It is replaced as a whole, so that whoever reads it finds
// one that is there.
type Pointer struct {
	View     string `json:"view"` // the archive's name in the log: archive.<host>
	Network  string `json:"network"`
	Live     string `json:"live"`               // the file that answers
	Shadow   string `json:"shadow,omitempty"`   // the one that a rebuild makes
	Previous string `json:"previous,omitempty"` // the one that answered before
}

// ErrNone is returned when a directory holds no archive.
var ErrNone = errors.New("there is no archive")

// Pointer reads which file is which. It fails with ErrNone when nothing was made here yet.
func (d Directory) Pointer() (p Pointer, err error) {
	raw, err := os.ReadFile(filepath.Join(string(d), pointerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("%s: %w", d, ErrNone)
	}
	if err != nil {
		return p, fmt.Errorf("archive: %w", err)
	}
	if err := json.Unmarshal(raw, &p); err != nil || p.Live == "" {
		return p, fmt.Errorf("archive %s: not what was written there (%w): the .db files beside it hold the rows", filepath.Join(string(d), pointerFile), err)
	}
	return p, nil
}

// File is the path of a generation.
func (d Directory) File(name string) string { return filepath.Join(string(d), filepath.Base(name)) }

// Point replaces the pointer.
func (d Directory) Point(p Pointer) error {
	raw, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(string(d), "."+pointerFile+"-*")
	if err != nil {
		return err
	}
	_, err = file.Write(append(raw, '\n'))
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), filepath.Join(string(d), pointerFile))
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("archive %s: %w", d, err)
	}
	return syncDir(string(d))
}

// Make creates an empty generation under a name of its own, and gives that name.
func (d Directory) Make(ctx context.Context, id Identity) (string, error) {
	for n := 1; ; n++ {
		name := fmt.Sprintf("archive-%d-%.8s-%d.db", id.Fold, id.Incarnation, n)
		err := Create(ctx, d.File(name), id)
		if !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
}

// Drop removes a generation.
func (d Directory) Drop(name string) error {
	var err error
	for _, part := range []string{"", "-wal", "-shm"} {
		if e := os.Remove(d.File(name) + part); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Open opens the file that answers.
func (d Directory) Open(ctx context.Context) (*Reader, Pointer, error) {
	p, err := d.Pointer()
	if err != nil {
		return nil, p, err
	}
	r, err := OpenReader(ctx, d.File(p.Live))
	return r, p, err
}
