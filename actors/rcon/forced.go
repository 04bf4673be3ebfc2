package rcon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/landfall/landfall/events"
)

// chunk is a column of 16 by 16 blocks.
type chunk struct {
	World string `json:"world"`
	X     int    `json:"x"` // in chunks
	Z     int    `json:"z"`
}

func chunkOf(at events.Position) chunk {
	return chunk{World: at.World, X: int(math.Floor(at.X)) >> 4, Z: int(math.Floor(at.Z)) >> 4}
}

// centre is the block in the middle, which a spread of 7 blocks keeps inside.
func (c chunk) centre() (x, z int) { return c.X*16 + 8, c.Z*16 + 8 }

// forced is the record of the chunks that we, and not the operator, keep
// loaded. It is on disk before the server is asked to load one, so that a
// killed sidecar leaves nothing loaded for good. Safe for concurrent use.
type forced struct {
	file string

	mu    sync.Mutex
	kept  map[chunk]bool
	stale map[chunk]bool // to be released as soon as the server can be asked
}

type forcedFile struct {
	Version int     `json:"version"`
	Chunks  []chunk `json:"chunks"`
}

// openForced reads what an earlier life left; all of it is stale.
func openForced(dir string) (*forced, error) {
	f := &forced{file: filepath.Join(dir, "forced-chunks.json"), kept: map[chunk]bool{}, stale: map[chunk]bool{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open record of force-loaded chunks: %w", err)
	}
	data, err := os.ReadFile(f.file)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open record of force-loaded chunks: %w", err)
	}
	var content forcedFile
	err = json.Unmarshal(data, &content)
	if err == nil && content.Version != 1 {
		err = fmt.Errorf("version %d, want 1", content.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("open record of force-loaded chunks: %s: %w; release them by /forceload remove, then delete the file", f.file, err)
	}
	for _, c := range content.Chunks {
		if checkWorld("", c.World) == nil {
			f.stale[c] = true
		}
	}
	return f, nil
}

// keep records a chunk that is about to be loaded; false when we hold it already.
func (f *forced) keep(c chunk) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kept[c] || f.stale[c] {
		return false, nil
	}
	f.kept[c] = true
	if err := f.save(); err != nil {
		delete(f.kept, c)
		return false, err
	}
	return true, nil
}

// abandon marks a chunk for release; false when it is not ours.
func (f *forced) abandon(c chunk) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kept[c] {
		delete(f.kept, c)
		f.stale[c] = true
	}
	return f.stale[c]
}

// forget takes a chunk out of the record once the server has released it, or
// when it turned out to be the operator's.
func (f *forced) forget(c chunk) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.kept, c)
	delete(f.stale, c)
	return f.save()
}

// leftovers lists what waits for release.
func (f *forced) leftovers() []chunk {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]chunk, 0, len(f.stale))
	for c := range f.stale {
		out = append(out, c)
	}
	return out
}

func (f *forced) save() error {
	content := forcedFile{Version: 1, Chunks: make([]chunk, 0, len(f.kept)+len(f.stale))}
	for _, set := range []map[chunk]bool{f.kept, f.stale} {
		for c := range set {
			content.Chunks = append(content.Chunks, c)
		}
	}
	data, err := json.Marshal(content)
	if err == nil {
		err = replaceFile(f.file, data)
	}
	if err != nil {
		return fmt.Errorf("record force-loaded chunks: %w", err)
	}
	return nil
}

// replaceFile writes beside the file and renames, so that a reader finds the
// old content or the new.
func replaceFile(file string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err == nil {
		err = temp.Sync()
	}
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}
