package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
)

// hostConfig is what one host goes by, as its last heartbeat says it.
type hostConfig struct {
	Host    events.HostID `json:"host"`
	Obeys   uint64        `json:"obeys"`   // the pushed version, 0: none
	Silent  bool          `json:"silent"`  // it has not beaten for a while
	AgeMs   int64         `json:"ageMs"`   // of the heartbeat
	Fixed   []string      `json:"fixed"`   // sections that differ from the file and need a restart
	Live    []string      `json:"live"`    // sections that differ from what the file, or the version in force, says
	Unknown bool          `json:"unknown"` // its version does not say what it goes by
	Refused uint64        `json:"refused,omitempty"`
	Fault   string        `json:"fault,omitempty"`
}

// configs compares what hosts go by with a file, or in the keys that can be pushed with the
// version in force.
func (n *census) configs(file *network.Network) []hostConfig {
	type heard struct {
		config *events.ConfigBeat
		at     time.Time
	}
	of := map[events.HostID]heard{}
	take := func(id events.HostID, c *events.ConfigBeat, at time.Time) {
		if old, known := of[id]; !known || old.at.Before(at) {
			of[id] = heard{c, at}
		}
	}
	for _, b := range n.fleet.Backends {
		take(b.Server, b.Config, b.Seen)
	}
	for _, p := range n.fleet.Proxies {
		take(p.Proxy, p.Config, p.Seen)
	}
	meant := n.meant(file)
	out := []hostConfig{}
	for _, id := range slices.Sorted(maps.Keys(of)) {
		x := of[id]
		age := max(n.now.Sub(x.at), 0)
		h := hostConfig{
			Host: id, AgeMs: age.Milliseconds(), Silent: age > meant.LoadBalancer.StaleAfterMs.Duration(),
			Fixed: []string{}, Live: []string{}, Unknown: x.config == nil,
		}
		if c := x.config; c != nil {
			h.Obeys, h.Refused, h.Fault = c.Pushed, c.Refused, c.Fault
			h.Fixed = events.Unlike(sectionsOf(file.Fixed()), c.Fixed)
			h.Live = events.Unlike(sectionsOf(meant.Pushables()), c.Live)
		}
		out = append(out, h)
	}
	return out
}

// meant is what every host should go by: the file, under the version in force.
func (n *census) meant(file *network.Network) *network.Network {
	if !n.version().inForce() {
		return file
	}
	if pushed, faults := file.WithPushed(n.controls.Config.Text); len(faults) == 0 {
		return pushed
	}
	return file
}

// words says in one line how a host stands to the version in force.
func (h hostConfig) words(n *census) string {
	newest := n.controls.ConfigSeq
	var parts []string
	switch {
	case h.Unknown:
		return "does not say what it goes by"
	case newest > 0 && h.Refused == newest:
		parts = append(parts, fmt.Sprintf("refuses version %d: %s", newest, h.Fault), h.goesBy())
	case h.Obeys != newest:
		parts = append(parts, fmt.Sprintf("%s, not yet by version %d", h.goesBy(), newest))
	case n.version().inForce():
		parts = append(parts, h.goesBy())
	default:
		parts = append(parts, "goes by its own file")
	}
	if len(h.Fixed) > 0 {
		parts = append(parts, "differs from the file, until it is restarted with the same one, in "+strings.Join(h.Fixed, ", "))
	}
	if len(h.Live) > 0 && h.Obeys == newest {
		parts = append(parts, "differs in keys that can be reloaded, in "+strings.Join(h.Live, ", "))
	}
	if h.Silent {
		parts = append(parts, fmt.Sprintf("last heard %s ago", (time.Duration(h.AgeMs)*time.Millisecond).Round(time.Second)))
	}
	return printable(strings.Join(parts, "; "))
}

func (h hostConfig) goesBy() string {
	if h.Obeys == 0 {
		return "goes by its own file"
	}
	return fmt.Sprintf("goes by version %d", h.Obeys)
}

// networkView is what `config show --network` and `config diff --network` print.
type networkView struct {
	Pushed *pushedVersion `json:"pushed"` // null: nobody ever pushed
	Keys   []keyPair      `json:"keys"`
	Hosts  []hostConfig   `json:"hosts"`

	file   string
	census *census
}

// keyPair is one key that can be pushed, as the file and as the version in force has it.
type keyPair struct {
	Key     string `json:"key"`
	File    any    `json:"file"` // null: it has none
	Network any    `json:"network"`
	Same    bool   `json:"same"`
}

// lookAtNetwork reads a file and what the network goes by.
func lookAtNetwork(ctx context.Context, path, store string) (*networkView, error) {
	file, err := network.Load(path)
	if err != nil {
		return nil, err
	}
	v := &networkView{file: path}
	flags := storeFlags{config: path, store: store}
	return v, flags.reading(ctx, func(log history, o *opener) error {
		if o.keys == nil {
			return errors.New("what the network goes by is believed only when it is verified, and no secret is at hand: set RTP_NET_SECRET, or security.secretFile")
		}
		v.census, err = takeCensus(ctx, log, o, file)
		if err != nil {
			return err
		}
		v.Pushed, v.Hosts = v.census.version(), v.census.configs(file)
		v.Keys, err = v.pairs(file)
		return err
	})
}

func (v *networkView) pairs(file *network.Network) ([]keyPair, error) {
	there := file
	if v.Pushed.inForce() {
		var faults []*network.Error
		if there, faults = file.WithPushed(v.census.controls.Config.Text); len(faults) > 0 {
			return nil, fmt.Errorf("version %d is in force and cannot be laid over %s by this program: %w", v.Pushed.Seq, v.file, faults[0])
		}
	}
	theirs := map[string]any{}
	for _, s := range there.Settings() {
		theirs[s.Key] = s.Value
	}
	rows := []keyPair{}
	for _, s := range file.Settings() {
		if !s.Pushable {
			continue
		}
		value, both := theirs[s.Key]
		delete(theirs, s.Key)
		if _, noEntries := s.Value.(map[string]any); both || !noEntries {
			rows = append(rows, keyPair{Key: s.Key, File: s.Value, Network: value, Same: both && valueText(value) == valueText(s.Value)})
		}
	}
	for _, s := range there.Settings() {
		value, only := theirs[s.Key]
		if _, noEntries := value.(map[string]any); only && s.Pushable && !noEntries {
			rows = append(rows, keyPair{Key: s.Key, Network: value})
		}
	}
	return rows, nil
}

// onlyDifferences leaves out what is the same, and who does not beat.
func (v *networkView) onlyDifferences() {
	v.Keys = slices.DeleteFunc(v.Keys, func(k keyPair) bool { return k.Same })
	v.Hosts = slices.DeleteFunc(v.Hosts, func(h hostConfig) bool {
		return h.Silent || len(h.Fixed)+len(h.Live) == 0 && h.Obeys == v.census.controls.ConfigSeq && !h.Unknown
	})
}

func (v *networkView) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(v)
	}
	var b strings.Builder
	switch {
	case v.Pushed == nil:
		b.WriteString("nobody has pushed: each host goes by its own file\n")
	case v.Pushed.Off:
		fmt.Fprintf(&b, "each host goes by its own file: the pushed configuration was taken back, %s\n", v.Pushed)
	default:
		fmt.Fprintf(&b, "in force is %s\n", v.Pushed)
	}
	b.WriteString(v.keyTable())
	b.WriteString(v.hostTable())
	_, err := io.WriteString(w, b.String())
	return err
}

func (v *networkView) keyTable() string {
	if len(v.Keys) == 0 {
		return ""
	}
	wide, middle := len("KEY"), len("FILE")
	text := func(value any) string {
		if value == nil {
			return "-"
		}
		return valueText(value)
	}
	for _, k := range v.Keys {
		wide, middle = max(wide, len(k.Key)), max(middle, len(text(k.File)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  %-*s  %-*s  NETWORK\n", wide, "KEY", middle, "FILE")
	for _, k := range v.Keys {
		mark := "*"
		if k.Same {
			mark = " "
		}
		fmt.Fprintf(&b, "%s %-*s  %-*s  %s\n", mark, wide, k.Key, middle, text(k.File), text(k.Network))
	}
	return b.String()
}

func (v *networkView) hostTable() string {
	var b strings.Builder
	wide := 0
	for _, h := range v.Hosts {
		wide = max(wide, len(h.Host))
	}
	for _, h := range v.Hosts {
		fmt.Fprintf(&b, "%-*s  %s\n", wide, h.Host, h.words(v.census))
	}
	return b.String()
}

// networkFlags let a verb look at the network beside the file.
type networkFlags struct {
	network bool
	store   string
}

func (f *networkFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.network, "network", false, "beside the file: what operators pushed, and what each host goes by")
	c.Flags().StringVar(&f.store, "store", "", "with --network: NATS URL or directory of the store (default: as the file says)")
}
