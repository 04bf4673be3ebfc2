package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// sealedFile holds, beside network.yml, identity facts that the operator has signed and that no
// log has yet: those of a network that has never run. Whoever carries the store brings them in.
const sealedFile = "identities.json"

// readSealed reads the facts; none when there is no file.
func readSealed(path string) (facts []events.SealedFact, err error) {
	text, err := os.ReadFile(path) //nolint:gosec // beside network.yml
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &facts)
	}
	if err != nil {
		return nil, fmt.Errorf("identities: %s: %w", path, err)
	}
	return facts, nil
}

// writeSealed replaces the file in one step.
func writeSealed(path string, facts []events.SealedFact) error {
	text, err := json.MarshalIndent(facts, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+sealedFile+".*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// introduceSealed appends the facts of the file whose key the log does not have. What the
// operator has not signed is refused by name.
func introduceSealed(ctx context.Context, st *streams.Store, keys *events.Keyring, path string) (brought []string, err error) {
	facts, err := readSealed(path)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(facts, func(a, b events.SealedFact) int { // the operator's own first
		return strings.Compare(rank(a.Key), rank(b.Key))
	})
	for _, f := range facts {
		r, err := f.Record()
		if err != nil {
			return brought, fmt.Errorf("identities: %s: %w", path, err)
		}
		if refusal := events.Genuine(keys, r); refusal != nil {
			return brought, fmt.Errorf("identities: %s: %s: %w", path, f.Key, refusal)
		}
		if _, there, err := st.LastOf(ctx, events.Control, f.Key); err != nil || there {
			if err != nil {
				return brought, err
			}
			continue
		}
		if _, err := st.Append(ctx, events.Message{Bucket: r.Bucket, Key: r.Key, Header: r.Header, Body: r.Body}); err != nil && !actors.Overtaken(err) {
			return brought, err
		}
		brought = append(brought, f.Key)
	}
	return brought, nil
}

func rank(key string) string {
	if key == events.IdentityKey(events.RootID) {
		return ""
	}
	return key
}
