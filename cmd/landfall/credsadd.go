package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// credsAdd is one run of `creds add`.
type credsAdd struct {
	credsFlags
	keepSecret, renew bool
}

func newCredsAdd() *cobra.Command {
	var a credsAdd
	c := &cobra.Command{
		Use:   "add backend|proxy|operator|auditor NAME",
		Short: "Give a host, an operator or an auditor a key of its own",
		Long: `Makes a key, writes it into hosts.<NAME>.creds of network.yml (or creds/<NAME>.nk), readable by its
owner alone, and says in the log that it is good from now on, for that name and role only:

  backend   its heartbeat, its questions and answers; no fact, no reading of the log
  proxy     a host that moves players: appends facts and reads, changes no stream, decides nothing
  operator  everything in the store, and decisions (kill, drain, …); names nobody
  auditor   reads everything, signs nothing

From then on the shared secret neither logs in nor signs for that host. If it runs with the secret
now, add the key with --keep-secret, restart it with its file, and run add again: that ends the
secret's word for it. Run again without need, add changes nothing.

--renew makes another key beside the one that is good; the earlier file is kept as <file>.earlier.
Restart the host with the new one, then: landfall creds revoke ROLE NAME --earlier.

Exit status: 0 it stands in the log, 1 otherwise.`,
		Example: `  landfall creds add backend survival-3
  landfall creds add operator ada --why "second operator"`,
		Args: twoWords,
		RunE: func(c *cobra.Command, args []string) error {
			var s subject
			check := func(conf *network.Network) (err error) {
				s, err = subjectOf(args, conf)
				return err
			}
			return a.within(c.Context(), check, func(r *registry) error { return a.run(c.Context(), c.OutOrStdout(), r, s) })
		},
	}
	a.add(c)
	c.Flags().BoolVar(&a.keepSecret, "keep-secret", false, "believe the shared secret of this host as well, until add is run again")
	c.Flags().BoolVar(&a.renew, "renew", false, "make another key beside the one that is good")
	return c
}

func (a *credsAdd) run(ctx context.Context, w io.Writer, r *registry, s subject) error {
	f, known := r.keys.Identities()[s.id]
	switch {
	case !known:
		f = events.IdentitySet{Host: s.id, Role: s.role, Keys: []events.HostKey{}, Alone: []events.Span{}}
	case f.Role != s.role && len(openKeys(f)) > 0:
		return fmt.Errorf("creds: %s is known as %s: landfall creds revoke %s %s first", s.id, article(f.Role), f.Role, s.id)
	}
	f.Role, f.Who, f.Why = s.role, a.who, a.why
	now, err := r.ends(ctx)
	if err != nil {
		return err
	}
	path := s.file(r.conf)
	key, made, err := a.key(s, f, path)
	if err != nil {
		return err
	}
	before := fmt.Sprint(f)
	public := hex.EncodeToString(key.Raw())
	if !hasOpenKey(f, public) {
		if f, err = addKey(f, public, now); err != nil {
			return err
		}
	}
	if !a.keepSecret {
		f = withoutSecret(f, now)
	}
	if known && fmt.Sprint(f) == before {
		_, err = fmt.Fprintf(w, "%s is %s with key %s already\n", s.id, article(s.role), events.HostKeyID(key.Raw()))
		return err
	}
	seq, err := r.write(ctx, f)
	if err != nil {
		return err
	}
	if made {
		fmt.Fprintf(w, "made  %s\n", path)
	}
	fmt.Fprintf(w, "%s is %s with key %s (sequence %d of control)\n", s.id, article(s.role), events.HostKeyID(key.Raw()), seq)
	return a.advise(w, r, s, path, made)
}

// key reads the host's file, or makes it; made tells which.
func (a *credsAdd) key(s subject, f events.IdentitySet, path string) (key streams.HostKey, made bool, err error) {
	there := exists(path)
	if there {
		if key, err = streams.ReadHostKey(path); err != nil {
			return key, false, fmt.Errorf("creds: %w", err)
		}
		if key.ID != "" && key.ID != s.id {
			return key, false, fmt.Errorf("creds: %s is the key of %s", path, key.ID)
		}
	}
	known := there && hasOpenKey(f, hex.EncodeToString(key.Raw()))
	switch {
	case there && !a.renew && !known && len(openKeys(f)) > 0:
		return key, false, fmt.Errorf("creds: %s is none of the keys of %s: bring the right file, or remove this one and give --renew", path, s.id)
	case there && !a.renew:
		return key, false, nil // also one that a first try left behind
	case !there && !a.renew && len(openKeys(f)) > 0:
		return key, false, fmt.Errorf("creds: %s has a key, whose file is not here (%s): copy it from the host, or make another with --renew", s.id, path)
	case there && known:
		if err := os.Rename(path, path+".earlier"); err != nil {
			return key, false, err
		}
	case there: // what an earlier renewal left behind
		return key, false, nil
	}
	if key, err = streams.NewHostKey(s.streamsRole(), s.id); err != nil {
		return key, false, err
	}
	text, err := key.Text()
	if err != nil {
		return key, false, err
	}
	return key, true, makeFile(path, text)
}

func hasOpenKey(f events.IdentitySet, public string) bool {
	for _, i := range openKeys(f) {
		if f.Keys[i].Key == public {
			return true
		}
	}
	return false
}

// advise says what is left to do.
func (a *credsAdd) advise(w io.Writer, r *registry, s subject, path string, made bool) error {
	x, isHost := r.conf.Hosts[string(s.id)]
	if isHost && x.Creds == "" {
		fmt.Fprintf(w, "Put into network.yml, on every host: hosts: { %s: { creds: %s } }\n", s.id, credsPath(string(s.id)))
	}
	if made && isHost {
		fmt.Fprintf(w, "Copy %s to %s, to where its network.yml says, and start it again.\n", path, s.id)
	}
	if a.keepSecret {
		fmt.Fprintf(w, "The shared secret speaks for it too, until: landfall creds add %s %s\n", s.role, s.id)
	}
	if r.conf.Store.Mode == "external" {
		fmt.Fprintf(w, "Print the logins again and have every nats-server read them: landfall config nats\n")
	}
	return nil
}

// makeFile writes a file that is not there yet, for its owner alone.
func makeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the operator names the directory
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already: nothing is overwritten", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path)) // half a secret would be kept for ever
	}
	return nil
}
