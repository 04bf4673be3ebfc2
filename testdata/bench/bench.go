package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// systems in the order of a round. A claim of the log is its own audit entry, so its peer writes one, too.
var systems = []struct {
	name string
	peer string // whom the ratio compares with; "": nobody
	open func(context.Context, *env) (system, error)
}{
	{"raw write, grouped fdatasync", "Redis always + XADD", openRaw},
	{"Redis always", "Redis always + XADD", openRedis("always", false)},
	{"Redis always + XADD", "", openRedis("always", true)},
	{"PostgreSQL on", "Redis always + XADD", openPostgres("on", false)},
	{"PostgreSQL on + audit row", "Redis always + XADD", openPostgres("on", true)},
	{"Landfall R1 always", "Redis always + XADD", openOne(one{name: "always"})},
	{"Landfall R1 grouped", "Redis always + XADD", openOne(one{name: "grouped", config: embedded.Config{Durability: streams.Grouped}})},
	{"Landfall R1 grouped, loopback", "Redis always + XADD", openOne(one{name: "grouped-loopback", config: embedded.Config{Durability: streams.Grouped}, remote: true})},
	{"Landfall R3 always", "Redis always + XADD", openThree},

	{"Redis everysec", "Redis everysec + XADD", openRedis("everysec", false)},
	{"Redis everysec + XADD", "", openRedis("everysec", true)},
	{"PostgreSQL off", "Redis everysec + XADD", openPostgres("off", false)},
	{"Landfall R1 lazy", "Redis everysec + XADD", openOne(one{name: "lazy", config: embedded.Config{Durability: streams.Lazy}})},
	{"Landfall R1 lazy, loopback", "Redis everysec + XADD", openOne(one{name: "lazy-loopback", config: embedded.Config{Durability: streams.Lazy}, remote: true})},

	{"Redis in memory + XADD", "", openRedis("no", true)},
	{"Landfall in memory", "Redis in memory + XADD", openOne(one{name: "memory", config: embedded.Config{Settings: streams.Settings{Storage: streams.Memory}}})},
	{"Landfall in memory, loopback", "Redis in memory + XADD", openOne(one{name: "memory-loopback", config: embedded.Config{Settings: streams.Settings{Storage: streams.Memory}}, remote: true})},
}

// bench is one run of the program.
type bench struct {
	options
	out io.Writer
	env *env
	all []*candidate
}

// candidate is one system in this run.
type candidate struct {
	name, peer string
	system     system
	tokens     []*token      // every one it was given
	runs       map[int][]run // by claimers, one a round
}

func (b *bench) open(ctx context.Context) error {
	for _, s := range systems {
		if !b.only.MatchString(s.name) {
			continue
		}
		opened, err := s.open(ctx, b.env)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		b.all = append(b.all, &candidate{name: s.name, peer: s.peer, system: opened, runs: map[int][]run{}})
	}
	if len(b.all) == 0 {
		return fmt.Errorf("-only %s: matches no system", b.only)
	}
	return nil
}

func (b *bench) close() error { return b.env.close() }

const (
	warmUp       = 300 * time.Millisecond
	warmUpTokens = 3000
	spare        = 1.5 // tokens that a measurement gets, by what the one before would have used
)

// measure takes turns: every system once, then all of them again. A first round warms up and is not counted.
func (b *bench) measure(ctx context.Context) error {
	for _, claimers := range b.claimers {
		rate := map[*candidate]float64{}
		for round := range b.rounds + 1 {
			for _, c := range b.all {
				n, limit := warmUpTokens, warmUp
				if round > 0 {
					limit = time.Duration(b.seconds * float64(time.Second))
					n = int(spare*rate[c]*b.seconds) + claimers
				}
				r, err := b.once(ctx, c, n, claimers, limit)
				if err != nil {
					return fmt.Errorf("%s, %d claimers: %w", c.name, claimers, err)
				}
				if rate[c] = r.perSecond; round > 0 {
					c.runs[claimers] = append(c.runs[claimers], r)
				}
			}
			fmt.Fprintf(os.Stderr, "%d claimers: round %d of %d\n", claimers, round, b.rounds)
		}
	}
	return nil
}

func (b *bench) once(ctx context.Context, c *candidate, n, claimers int, limit time.Duration) (run, error) {
	tokens := newTokens(n)
	c.tokens = append(c.tokens, tokens...)
	if err := c.system.fill(ctx, tokens); err != nil {
		return run{}, fmt.Errorf("fill: %w", err)
	}
	before, err := b.env.cpuTime()
	if err != nil {
		return run{}, err
	}
	r, err := claimAll(ctx, c.system, tokens, claimers, limit)
	if err != nil {
		return run{}, err
	}
	after, err := b.env.cpuTime()
	r.cpu = time.Duration(float64(after-before) / float64(r.won))
	return r, err
}

// check is the claim that the figures are of claims.
func (b *bench) check(ctx context.Context) error {
	fmt.Fprintln(b.out)
	for _, c := range b.all {
		if err := checkClaims(ctx, c.system, c.tokens); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		lost := 0
		for _, runs := range c.runs {
			for _, r := range runs {
				lost += r.lost
			}
		}
		fmt.Fprintf(b.out, "%s: %d tokens, each that was tried was claimed once; %d claims lost to another claimer.\n", c.name, len(c.tokens), lost)
	}
	return nil
}

// tables are Markdown, one for each number of claimers.
func (b *bench) tables() string {
	var out strings.Builder
	for _, claimers := range b.claimers {
		fmt.Fprintf(&out, "\n%d claimers:\n\n| system | claims/s | lowest to highest | p50 | p99 | CPU | ratio | to |\n|---|---|---|---|---|---|---|---|\n", claimers)
		for _, c := range b.all {
			runs := c.runs[claimers]
			rates := sorted(runs, func(r run) float64 { return r.perSecond })
			fmt.Fprintf(&out, "| %s | %.0f | %.0f to %.0f | %s | %s | %.0f µs | %s | %s |\n", c.name, middle(rates), rates[0], rates[len(rates)-1],
				milliseconds(middle(sorted(runs, func(r run) float64 { return r.p50.Seconds() }))),
				milliseconds(middle(sorted(runs, func(r run) float64 { return r.p99.Seconds() }))),
				1e6*middle(sorted(runs, func(r run) float64 { return r.cpu.Seconds() })), b.ratio(c, claimers), c.peer)
		}
	}
	return out.String()
}

// ratio is the median of the rounds' own ratios: the two ran right after one another.
func (b *bench) ratio(c *candidate, claimers int) string {
	i := slices.IndexFunc(b.all, func(p *candidate) bool { return p.name == c.peer })
	if i < 0 {
		return ""
	}
	var ratios []float64
	for round, r := range c.runs[claimers] {
		ratios = append(ratios, r.perSecond/b.all[i].runs[claimers][round].perSecond)
	}
	slices.Sort(ratios)
	return fmt.Sprintf("%.2f", middle(ratios))
}

func sorted(runs []run, of func(run) float64) []float64 {
	out := make([]float64, len(runs))
	for i, r := range runs {
		out[i] = of(r)
	}
	slices.Sort(out)
	return out
}

func middle(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[n/2]
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.2f ms", seconds*1000) }

// machine says where and with what the figures were taken.
func (b *bench) machine(filesystem string, at time.Time) string {
	versions := []string{runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if strings.HasSuffix(m.Path, "/nats-server/v2") {
				versions = append(versions, "nats-server "+m.Version)
			}
		}
	}
	if len(b.env.redis) > 0 {
		version, _, _ := strings.Cut(versionOf(context.Background(), "redis-server"), " sha=")
		versions = append(versions, version)
	}
	if bin, err := postgresBin(); err == nil && b.env.postgres != "" {
		versions = append(versions, versionOf(context.Background(), filepath.Join(bin, "postgres")))
	}
	return fmt.Sprintf("%s; %d cores (%s), %s; %s.\n%d rounds of %g s in turns, medians; each %dth token is claimed by two at once (not with 1 claimer).\n",
		at.Format(time.DateOnly), runtime.NumCPU(), processor(), filesystem, strings.Join(versions, ", "), b.rounds, b.seconds, contendedEvery)
}

func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "model name"); ok {
			return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(name), ":"))
		}
	}
	return runtime.GOARCH
}
