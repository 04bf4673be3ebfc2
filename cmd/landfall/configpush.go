package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
)

// push is `config push`.
type push struct {
	order
	off bool
}

func newConfigPush() *cobra.Command {
	var p push
	c := &cobra.Command{
		Use:   "push",
		Short: "Put the keys of network.yml that can change into force on every running host, at once",
		Long: `Checks network.yml (--config) as a host would, and puts its live keys into the log, without those
that name a file of each host's own (messages, permissions). Every host, also one that starts
later, goes by them from that sequence on, whatever its own file says, until the next push or
--off. A host that does not know one of the keys, or whose other keys contradict them, refuses
the whole, says so in its log and its heartbeat, and goes on with what it has.

What changes is printed: against the version in force, or, when there is none, by the hosts whose
own files say something else. "landfall config show --network" tells who has followed.

Exit status: 0 it stands in the log, or is in force already; 1 otherwise.`,
		Example: `  landfall config push --why "weekend"
  landfall config push --off`,
		Args: exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			if p.config == "" && (p.store == "" || !p.off) {
				p.config = defaultConfig
			}
			return p.run(c)
		},
	}
	p.add(c)
	c.Flags().Lookup("config").Usage = "the file to push, which also names the store and the secret (default: ./" + defaultConfig + ")"
	c.Flags().BoolVar(&p.off, "off", false, "take the version in force back: each host goes by its own file again")
	return c
}

func (p *push) run(c *cobra.Command) error {
	var file *network.Network
	if !p.off {
		var err error
		if file, err = p.examine(c.ErrOrStderr()); err != nil {
			return err
		}
	}
	return p.within(c.Context(), func(d deciding) error {
		n, err := p.census(c.Context(), d)
		if err != nil {
			return err
		}
		report := p.compare(n, file)
		if report.Same {
			return report.print(c.OutOrStdout(), p.json)
		}
		fact := p.fact(file)
		op, err := d.operator()
		if err != nil {
			return err
		}
		report.Seq, err = op.DecreeAfter(c.Context(), events.ConfigKey, n.controls.ConfigSeq, fact)
		if actors.Overtaken(err) {
			return errors.New("somebody else has pushed in this moment, nothing was changed: see `landfall config show --network`, and push again")
		}
		if err != nil {
			return err
		}
		report.Says = describe(fact)
		return report.print(c.OutOrStdout(), p.json)
	})
}

// examine reads the file to push, and shows all its faults.
func (p *push) examine(stderr io.Writer) (*network.Network, error) {
	v := examine(p.config, "", func(string) string { return "" })
	for _, problem := range v.Problems {
		if _, err := fmt.Fprintln(stderr, problem); err != nil {
			return nil, err
		}
	}
	switch {
	case !v.OK:
		return nil, fmt.Errorf("%s has %s: nothing is pushed", p.config, plural(len(v.Problems), "fault"))
	case !v.Enabled:
		return nil, fmt.Errorf("%s: network.enabled is false, contradictions were not looked for: nothing is pushed", p.config)
	}
	if _, err := policyOf(v.net); err != nil {
		return nil, err
	}
	if size := len(v.net.Pushable()) + len(p.who) + len(p.why); size > maxPushed {
		return nil, fmt.Errorf("%s: its live keys take %d bytes, a fact holds %d: leave out entries of loadBalancer.backends and the like that do not differ from the default", p.config, size, maxPushed)
	}
	return v.net, nil
}

// maxPushed leaves room for what surrounds the text in a fact, and in the answer to a backend.
const maxPushed = events.MaxBody - 512

func (p *push) fact(file *network.Network) *events.ConfigSet {
	f := &events.ConfigSet{Who: p.who, Why: p.why}
	if file != nil {
		f.Text = file.Pushable()
	}
	return f
}

// pushReport is what `config push` prints.
type pushReport struct {
	Seq     uint64          `json:"seq,omitempty"` // of the new version; 0: nothing was to be done
	Same    bool            `json:"same"`          // it is in force already
	Before  *pushedVersion  `json:"before,omitempty"`
	Changes []changeRow     `json:"changes"`
	Hosts   []events.HostID `json:"hosts"`          // whose own files say something else, when nothing was in force
	Note    string          `json:"note,omitempty"` // why there are no changes to show
	Says    string          `json:"-"`
}

// pushedVersion is a version in the log.
type pushedVersion struct {
	Seq  uint64    `json:"seq"`
	Off  bool      `json:"off"` // it took the one before back
	Who  string    `json:"who"`
	Why  string    `json:"why"`
	Time time.Time `json:"time"` // by the store's clock
}

func (n *census) version() *pushedVersion {
	c := n.controls.Config
	if c == nil {
		return nil
	}
	return &pushedVersion{Seq: n.controls.ConfigSeq, Off: c.Text == "", Who: c.Who, Why: c.Why, Time: n.pushedAt.UTC()}
}

func (v *pushedVersion) inForce() bool { return v != nil && !v.Off }

func (v *pushedVersion) String() string {
	return printable(fmt.Sprintf("version %d, by %s at %s%s", v.Seq, v.Who, v.Time.Format(timeForm), reason(": ", v.Why)))
}

// compare says what a push of file changes; nil takes the version in force back.
func (p *push) compare(n *census, file *network.Network) *pushReport {
	r := &pushReport{Before: n.version(), Changes: []changeRow{}, Hosts: []events.HostID{}}
	switch {
	case file == nil:
		r.Same = !r.Before.inForce()
		r.Note = "each host goes by its own file again"
	case !r.Before.inForce():
		r.Hosts = n.otherwise(file)
	case n.controls.Config.Text == file.Pushable():
		r.Same = true
	default:
		old, faults := file.WithPushed(n.controls.Config.Text)
		if len(faults) > 0 {
			r.Note = "the version in force cannot be compared with: " + faults[0].Error()
			break
		}
		r.Changes = differenceOf(network.Diff(old, file)).Reload
	}
	return r
}

// otherwise names the hosts that beat, go by their own file, and whose file differs from this
// one in what can be pushed.
func (n *census) otherwise(file *network.Network) []events.HostID {
	hosts := []events.HostID{}
	for _, h := range n.configs(file) {
		if len(h.Live) > 0 && !h.Silent {
			hosts = append(hosts, h.Host)
		}
	}
	return hosts
}

func (r *pushReport) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	var b strings.Builder
	switch {
	case r.Same && !r.Before.inForce():
		b.WriteString("no version is in force: nothing to take back\n")
	case r.Same:
		fmt.Fprintf(&b, "this is in force already: %s\n", r.Before)
	case r.Before.inForce():
		fmt.Fprintf(&b, "in force was %s\n", r.Before)
	default:
		fmt.Fprintf(&b, "no version was in force; hosts whose own files said something else: %s\n", namesOf(r.Hosts))
	}
	for _, row := range r.Changes {
		fmt.Fprintf(&b, "  %s\n", row)
	}
	if !r.Same {
		if r.Note != "" {
			fmt.Fprintf(&b, "  %s\n", printable(r.Note))
		}
		fmt.Fprintf(&b, "%s (sequence %d of control)\n", r.Says, r.Seq)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func namesOf(hosts []events.HostID) string {
	if len(hosts) == 0 {
		return "none"
	}
	var names []string
	for _, id := range hosts {
		names = append(names, string(id))
	}
	return strings.Join(names, ", ")
}
