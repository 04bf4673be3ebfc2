package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// rawTokens is the least that a claim on a disk can be: compare-and-set in memory, a record of a fact's length at the
// end of a file, and one fdatasync for all who came meanwhile. No server, no other process: nothing durable is faster.
type rawTokens struct {
	f *os.File

	mu      sync.Mutex
	claimed map[string]int
	written int64 // records
	synced  int64
	syncing bool
	turn    sync.Cond
	err     error
}

// rawRecord is about what a claim takes in the log.
const rawRecord = 800

func openRaw(_ context.Context, e *env) (system, error) {
	f, err := os.Create(filepath.Join(e.dir, "raw"))
	if err != nil {
		return nil, err
	}
	e.onClose(f.Close)
	s := &rawTokens{f: f, claimed: map[string]int{}}
	s.turn.L = &s.mu
	return s, nil
}

func (s *rawTokens) fill(context.Context, []*token) error { return nil }

func (s *rawTokens) claim(_ context.Context, claimer int, t *token) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.claimed[t.id()]; taken {
		return false, nil
	}
	s.claimed[t.id()] = claimer
	line := t.id() + " " + strconv.Itoa(claimer)
	if _, err := s.f.WriteString(line + strings.Repeat(" ", rawRecord-1-len(line)) + "\n"); err != nil {
		return false, err
	}
	s.written++
	for mine := s.written; s.synced < mine && s.err == nil; {
		if s.syncing {
			s.turn.Wait()
			continue
		}
		s.sync()
	}
	return s.err == nil, s.err
}

// sync makes durable what is written now. Called and left with the lock.
func (s *rawTokens) sync() {
	s.syncing = true
	covers := s.written
	s.mu.Unlock()
	err := syscall.Fdatasync(int(s.f.Fd()))
	s.mu.Lock()
	s.syncing, s.synced, s.err = false, covers, errors.Join(s.err, err)
	s.turn.Broadcast()
}

func (s *rawTokens) claims(_ context.Context, seen func(id string, claimer int)) error {
	text, err := os.ReadFile(s.f.Name())
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		id, by, _ := strings.Cut(strings.TrimSpace(line), " ")
		claimer, err := strconv.Atoi(by)
		if err != nil {
			return err
		}
		seen(id, claimer)
	}
	return nil
}
