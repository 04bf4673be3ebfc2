// Command bench measures one claim, the compare-and-set that decides who moves a player, over Redis, PostgreSQL and
// Landfall's log: the same tokens, the same claimers, the same disk, in turns (A B C A B C …). It starts the servers
// itself, on loopback and below one directory, and ends them. Debian: apt-get install redis-server postgresql-15.
//
//	go -C testdata/bench run . [-dir DIR] [-rounds 5] [-seconds 1] [-claimers 1,16,64] [-only REGEXP]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type options struct {
	dir      string
	rounds   int
	seconds  float64
	claimers []int
	only     *regexp.Regexp
	list     bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := compare(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&o.dir, "dir", "", "where all servers keep their data; must be a real disk (default: a directory of its own beside the working directory)")
	f.IntVar(&o.rounds, "rounds", 5, "measured rounds; medians are taken over them")
	f.Float64Var(&o.seconds, "seconds", 1, "length of one measurement")
	claimers := f.String("claimers", "1,16,64", "how many claim at once")
	only := f.String("only", "", "measure only the systems whose name matches this regular expression")
	f.BoolVar(&o.list, "list", false, "print the names of the systems")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	for text := range strings.SplitSeq(*claimers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxClaimers {
			return o, fmt.Errorf("-claimers %q: want numbers from 1 to %d, separated by commas", *claimers, maxClaimers)
		}
		o.claimers = append(o.claimers, n)
	}
	if o.rounds < 1 || o.seconds <= 0 {
		return o, fmt.Errorf("-rounds %d -seconds %g: want more than nothing", o.rounds, o.seconds)
	}
	o.only, err = regexp.Compile(*only)
	return o, err
}

func compare(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.list {
		for _, s := range systems {
			fmt.Fprintln(out, s.name)
		}
		return nil
	}
	dir, filesystem, err := workDir(o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	began := time.Now()
	b := &bench{options: o, out: out, env: &env{dir: dir, pids: map[int]bool{}, redis: map[string]string{}}}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.open(ctx); err != nil {
		return err
	}
	fmt.Fprint(out, b.machine(filesystem, began))
	if err := b.measure(ctx); err != nil {
		return err
	}
	fmt.Fprint(out, b.tables())
	if err := b.check(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nAll of it took %s.\n", time.Since(began).Round(time.Second))
	return nil
}

// workDir makes the directory of this run, on a filesystem that has a disk below it.
func workDir(under string) (dir, filesystem string, err error) {
	if under == "" {
		under = "."
	}
	if dir, err = os.MkdirTemp(under, "bench-*"); err != nil {
		return "", "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // PostgreSQL runs as another user
		return "", "", err
	}
	if filesystem, err = filesystemOf(dir); err != nil {
		return "", "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, filesystem, nil
}

// filesystemOf names the filesystem below dir and refuses one without a disk: an fsync there costs nothing.
func filesystemOf(dir string) (string, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return "", err
	}
	switch magic := uint32(fs.Type); magic { //nolint:gosec // four bytes on every system
	case 0x01021994, 0x858458f6:
		return "", fmt.Errorf("%s lies in memory: name a directory on a disk with -dir", dir)
	case 0xef53:
		return "ext4", nil
	case 0x58465342:
		return "xfs", nil
	case 0x9123683e:
		return "btrfs", nil
	default:
		return fmt.Sprintf("filesystem 0x%x", magic), nil
	}
}
