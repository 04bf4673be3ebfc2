package main

import (
	"context"
	"maps"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/api"
	"github.com/landfall/landfall/actors/edge"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
)

// changeable is what a running host takes on when it reads its configuration again, or when
// operators push another one: the keys of network.yml that are marked live, the texts for
// players, and what players may do. It is not changed after it was made.
type changeable struct {
	file        *network.Network // as it was read
	pushed      actors.Pushed    // the version in force; without a text the file's own keys hold
	refused     actors.Pushed    // a newer one that cannot be obeyed here, and why not
	fault       string
	net         *network.Network // the live keys of file, or of the version in force, over what this process was started with
	messages    actors.Languages
	permissions *network.Permissions
	scenes      api.Scenes
	policy      actors.Policy
	sections    []events.SectionBeat // of net's keys that can be pushed
}

// newChangeable makes all of it of files, for a process that was started with another file, or nothing.
func newChangeable(started, file *network.Network) (*changeable, error) {
	messages, err := readMessages(file.File(file.Messages))
	if err != nil {
		return nil, err
	}
	permissions, err := readPermissions(file)
	if err != nil {
		return nil, err
	}
	scenes, err := readScenes(file)
	if err != nil {
		return nil, err
	}
	c := &changeable{file: file, messages: messages, permissions: permissions, scenes: scenes}
	return c.obeying(started, actors.Pushed{})
}

// obeying gives c with a version in force, and so none refused.
func (c *changeable) obeying(started *network.Network, p actors.Pushed) (*changeable, error) {
	n, faults := started.TakeOn(c.file)
	if len(faults) == 0 && p.Text != "" {
		n, faults = n.WithPushed(p.Text)
	}
	if len(faults) > 0 {
		return nil, faults[0]
	}
	policy, err := policyOf(n)
	if err != nil {
		return nil, err
	}
	next := *c
	next.net, next.policy, next.sections = n, policy, sectionsOf(n.Pushables())
	next.pushed, next.refused, next.fault = p, actors.Pushed{}, ""
	return &next, nil
}

// refusing gives c when it cannot obey a newer version.
func (c *changeable) refusing(p actors.Pushed, why error) *changeable {
	next := *c
	next.refused, next.fault = p, oneLine(why)
	return &next
}

func (c *changeable) edgeTexts() edge.Texts {
	text := func(key string) string { return c.messages.In("").Text(key, nil) }
	return edge.Texts{
		Unreachable: text("login.unreachable"), Slow: text("login.slow"), Stopping: text("login.stopping"),
		Cut: text("login.cut"), BadName: text("login.name"),
	}
}

// live is the changeable part as it holds now, and who has to hear of the next one. Safe for
// concurrent use.
type live struct {
	current atomic.Pointer[changeable]

	mu        sync.Mutex // held while a change is passed on: all hear of changes in one order
	followers []func(*changeable)
}

func newLive(first *changeable) *live {
	l := &live{}
	l.current.Store(first)
	return l
}

func (l *live) now() *changeable { return l.current.Load() }

func (l *live) text(key string, args []events.Arg) string {
	return l.now().messages.In("").Text(key, args)
}

// follow hands f what holds now, and each change until the process ends. f must not block.
func (l *live) follow(f func(*changeable)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followers = append(l.followers, f)
	f(l.now())
}

// change replaces what holds by what f makes of it, unless f gives it back. All who follow
// have it when it returns. f must not block.
func (l *live) change(f func(was *changeable) *changeable) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.now()
	next := f(was)
	if next == was {
		return
	}
	l.current.Store(next)
	for _, f := range l.followers {
		f(next)
	}
}

// heed reads the configuration again whenever it is asked to, until ctx ends.
func (h *host) heed(ctx context.Context, again <-chan os.Signal) error {
	named := map[string]network.Change{}
	for {
		select {
		case <-again:
			h.reload(named)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reload adopts what has changed in the configuration and can be adopted, and names the rest,
// unless it was named before. A fault anywhere changes nothing.
func (h *host) reload(named map[string]network.Change) {
	h.live.change(func(was *changeable) *changeable {
		own, faults, err := h.readAgain()
		if err != nil {
			h.log.Error("configuration refused, nothing is changed", "error", oneLine(err), "faults", faults)
			return was
		}
		h.nameRestarts(network.Diff(h.net, own.file), named)
		if !own.file.Enabled() {
			return was // contradictions in it were not looked for
		}
		next, err := h.still(own, was)
		if err != nil {
			h.log.Error("configuration refused, nothing is changed", "error", oneLine(err), "faults", 1, "pushed", was.pushed.Seq)
			return was
		}
		h.warnOfNotYet(without(own.file.NotYet(), was.file.NotYet()))
		h.sayReloaded(was, own, next)
		return next
	})
}

func (h *host) sayReloaded(was, own, next *changeable) {
	if keys := adoptable(was, next); len(keys) > 0 {
		h.log.Info("configuration adopted", "keys", keys, "policy", next.policy.Name())
	} else {
		h.log.Info("configuration read again, there is nothing to adopt")
	}
	if next.pushed.Text != "" {
		h.log.Info("a pushed version goes before the file until: landfall config push --off",
			"version", next.pushed.Seq, "by", next.pushed.Who, "over", adoptable(own, next))
	}
}

// readAgain gives the configuration as it stands in the files, or the first of so many faults.
func (h *host) readAgain() (*changeable, int, error) {
	n, faults := network.Inspect(h.config)
	if len(faults) > 0 {
		return nil, len(faults), faults[0]
	}
	next, err := newChangeable(h.net, n)
	if all := single(err); len(all) > 0 {
		return nil, len(all), all[0]
	}
	return next, 0, nil
}

// adoptable lists the live keys, and those of files, in which two configurations differ.
func adoptable(was, next *changeable) []string {
	var keys []string
	for _, c := range network.Diff(was.net, next.net) {
		if c.Live {
			keys = append(keys, c.Key)
		}
	}
	for key, same := range map[string]bool{
		"messages":    maps.EqualFunc(was.messages, next.messages, maps.Equal[actors.Messages, actors.Messages]),
		"permissions": reflect.DeepEqual(was.permissions, next.permissions),
	} {
		if !same && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// nameRestarts names each key that differs from what this process was started with and is not
// live. named holds those that stand in the log already.
func (h *host) nameRestarts(changes []network.Change, named map[string]network.Change) {
	pending := map[string]bool{}
	for _, c := range changes {
		if c.Live {
			continue
		}
		pending[c.Key] = true
		if row := (changeRow{Key: c.Key, Change: c.What, From: c.From, To: c.To}); !sameChange(named[c.Key], c) {
			named[c.Key] = c
			h.log.Warn("this key needs a restart", "key", c.Key, "change", row.String())
		}
	}
	maps.DeleteFunc(named, func(key string, _ network.Change) bool { return !pending[key] })
}

func sameChange(a, b network.Change) bool {
	return a.What == b.What && valueText(a.To) == valueText(b.To)
}

func (h *host) warnOfNotYet(keys []string) {
	for _, key := range keys {
		h.log.Warn("this key is accepted, but not acted on in this version", "key", key)
	}
}

func without(keys, known []string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return slices.Contains(known, key) })
}
