package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/jackc/pgx/v5"
)

const (
	startPatience = 20 * time.Second
	stopPatience  = 10 * time.Second
)

// env is what systems share: a directory, and the servers that were started for one and serve another as well.
type env struct {
	dir      string
	closers  []func() error // in the order in which they were opened
	pids     map[int]bool   // of the servers that are processes of their own
	redis    map[string]string
	postgres string
}

func (e *env) onClose(f func() error) { e.closers = append(e.closers, f) }

// close ends the servers, the youngest first.
func (e *env) close() error {
	var errs []error
	for _, f := range slices.Backward(e.closers) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// start runs a server until the env is closed. Its output goes to a file, whose end is in the error when ready fails.
func (e *env) start(ctx context.Context, name string, cmd *exec.Cmd, ready func() error) error {
	path := filepath.Join(e.dir, name+".log")
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	e.pids[cmd.Process.Pid] = true
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is ended by a signal
	}()
	e.onClose(func() error { return stop(name, cmd, ended) })
	err = backoff.Retry(func() error {
		select {
		case <-ended:
			return backoff.Permanent(errors.New("it ended"))
		default:
			return ready()
		}
	}, backoff.WithContext(backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond), backoff.WithMaxElapsedTime(startPatience)), ctx))
	if err != nil {
		said, _ := os.ReadFile(path)
		return fmt.Errorf("start %s: %w: %s", name, err, said)
	}
	return nil
}

func stop(name string, cmd *exec.Cmd, ended <-chan struct{}) error {
	_ = cmd.Process.Signal(syscall.SIGINT) // "fast shutdown" to PostgreSQL; fails when it has ended
	select {
	case <-ended:
		return nil
	case <-time.After(stopPatience):
		return errors.Join(fmt.Errorf("%s had to be killed", name), cmd.Process.Kill())
	}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// redisServer starts one Redis for each policy of its append-only file ("no": without one), and gives its address.
func (e *env) redisServer(ctx context.Context, fsync string) (string, error) {
	if addr, ok := e.redis[fsync]; ok {
		return addr, nil
	}
	port, err := freePort()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(e.dir, "redis-"+fsync)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	args := []string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--auto-aof-rewrite-percentage", "0", "--daemonize", "no"}
	if fsync != "no" {
		args = append(args, "--appendonly", "yes", "--appendfsync", fsync)
	}
	addr := net.JoinHostPort("127.0.0.1", port)
	ready := func() error { return dialable(addr) }
	if err := e.start(ctx, "redis-"+fsync, exec.Command("redis-server", args...), ready); err != nil {
		return "", fmt.Errorf("%w (Debian: apt-get install redis-server)", err)
	}
	e.redis[fsync] = addr
	return addr, nil
}

func dialable(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

// postgresServer starts PostgreSQL once, with its own defaults but for memory, and gives its connection string.
func (e *env) postgresServer(ctx context.Context) (string, error) {
	if e.postgres != "" {
		return e.postgres, nil
	}
	bin, err := postgresBin()
	if err != nil {
		return "", err
	}
	who, err := postgresUser()
	if err != nil {
		return "", err
	}
	port, err := freePort()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(e.dir, "postgres")
	if err := who.own(dir); err != nil {
		return "", err
	}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", dir, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale", "C")
	initdb.SysProcAttr, initdb.Dir = who.attr(), e.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w: %s", err, out)
	}
	server := exec.Command(filepath.Join(bin, "postgres"), "-D", dir, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", fmt.Sprintf("max_connections=%d", maxClaimers+20), "-c", "shared_buffers=512MB", "-c", "max_wal_size=4GB")
	server.SysProcAttr, server.Dir = who.attr(), e.dir
	dsn := fmt.Sprintf("host=127.0.0.1 port=%s user=bench dbname=postgres sslmode=disable", port)
	if err := e.start(ctx, "postgres", server, func() error { return answers(ctx, dsn) }); err != nil {
		return "", err
	}
	e.postgres = dsn
	return dsn, nil
}

// answers tells that PostgreSQL is done with starting: it listens before.
func answers(ctx context.Context, dsn string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	return c.Close(ctx)
}

// postgresBin is the newest installed server: Debian keeps its programs out of the path, whose wrappers choose by cluster.
func postgresBin() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return filepath.Dir(slices.Max(found)), nil
	}
	path, err := exec.LookPath("postgres")
	if err != nil {
		return "", fmt.Errorf("%w (Debian: apt-get install postgresql-15)", err)
	}
	return filepath.Dir(path), nil
}

// account is who runs PostgreSQL, which refuses to be root.
type account struct{ uid, gid int }

func postgresUser() (account, error) {
	if os.Getuid() != 0 {
		return account{os.Getuid(), os.Getgid()}, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return account{}, fmt.Errorf("root may not run PostgreSQL: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return account{}, err
	}
	gid, err := strconv.Atoi(u.Gid)
	return account{uid, gid}, err
}

func (a account) own(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.Chown(dir, a.uid, a.gid)
}

func (a account) attr() *syscall.SysProcAttr {
	if a.uid == os.Getuid() {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}} //nolint:gosec // as the system gave them
}

// versionOf asks a program for its version.
func versionOf(ctx context.Context, program string) string {
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return filepath.Base(program) + " (no version)"
	}
	return strings.TrimSpace(string(out))
}
