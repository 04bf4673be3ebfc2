package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// operatorFile is where the operator's key is, beside network.yml, unless --key names another.
const operatorFile = "operator.nk"

// trust is what a verb believes, and in whose name it speaks.
type trust struct {
	secrets  [][]byte          // shared ones, the signing one first
	operator ed25519.PublicKey // nil: hosts have no keys of their own
	own      *streams.HostKey  // of the operator or an auditor; nil: speaks with the first secret
}

// keyring believes all of it. It knows no host yet.
func (t trust) keyring(more ...events.Key) (*events.Keyring, error) {
	all := more
	for _, secret := range t.secrets {
		k, err := events.NewKey(secret)
		if err != nil {
			return nil, fmt.Errorf("secret: %w", err)
		}
		all = append(all, k)
	}
	keys := events.NewKeyring(all...)
	if t.operator != nil {
		keys.Trust(t.operator)
	}
	return keys, nil
}

// trustOf is what a network.yml says is to be believed, as far as it is at hand.
func trustOf(n *network.Network, env func(string) string) (t trust, err error) {
	if t.operator, err = operatorKeyOf(n); err != nil {
		return t, err
	}
	t.secrets, err = secretsFor(source{}, n, env)
	return t, err
}

// decides tells that decisions can be signed.
func (t trust) decides() bool {
	return t.own != nil && t.own.Role == streams.RoleOperator || t.own == nil && len(t.secrets) > 0
}

// speaker is who speaks in a verb, for as long as it runs.
func (t trust) speaker() (actors.Identity, error) {
	src := events.Source{Kind: events.SourceOperator, ID: operatorID, Incarnation: events.Incarnation(newID())}
	keys, err := t.keyring()
	if err != nil {
		return actors.Identity{}, err
	}
	if t.own != nil {
		src.ID, keys = t.own.ID, keys.As(t.own.Private)
	}
	return actors.Identity{Source: src, Keys: keys, Now: time.Now, NewID: newID}, nil
}

// operatorKeyOf is the public half of the operator's key that network.yml names, nil when it names none.
func operatorKeyOf(n *network.Network) (ed25519.PublicKey, error) {
	if n.Network.OperatorKey == "" {
		return nil, nil
	}
	key, err := streams.DecodePublic(n.Network.OperatorKey)
	if err != nil {
		return nil, n.At(network.CodeBadKey, "network.operatorKey", "%v; allowed: what `landfall init` writes there", err)
	}
	return key, nil
}

// credsOf reads the key of a host that network.yml names; nil when it names none.
func credsOf(n *network.Network, id string) (*streams.HostKey, error) {
	file := n.Hosts[id].Creds
	if file == "" {
		return nil, nil
	}
	key := "hosts." + id + ".creds"
	k, err := streams.ReadHostKey(n.File(file))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, n.At(network.CodeBadKey, key, "there is no %s; allowed: the file that `landfall creds add` made for this host", n.File(file))
	case err != nil:
		return nil, n.At(network.CodeBadKey, key, "%v; allowed: the file that `landfall creds add` made for this host", err)
	case k.ID != "" && string(k.ID) != id:
		return nil, n.At(network.CodeBadKey, key, "%s is the key of %s; allowed: the file that `landfall creds add` made for %s", n.File(file), k.ID, id)
	}
	return &k, nil
}

// ownKey reads the key that a verb speaks with: the one it was given, or the operator's beside
// network.yml, if it is there.
func ownKey(file string, conf *network.Network) (*streams.HostKey, error) {
	given := file != ""
	if !given && (conf == nil || conf.Network.OperatorKey == "") {
		return nil, nil
	}
	if !given {
		file = conf.File(operatorFile)
	}
	k, err := streams.ReadHostKey(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !given:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("--key: %w", err)
	case k.Role != streams.RoleOperator && k.Role != streams.RoleAuditor || k.ID == "":
		return nil, fmt.Errorf("--key %s: is not the key of an operator or an auditor, but of %q", filepath.Base(file), strings.TrimSpace(string(k.Role)+" "+string(k.ID)))
	}
	return &k, nil
}

// know takes in what the operator says of the hosts, as the log has it.
func (o *opener) know(ctx context.Context, log history) error {
	if o.keys == nil || !o.keys.Keyed() {
		return nil
	}
	for r, err := range log.History(ctx, events.Control, streams.Range{Newest: true}) {
		if err != nil {
			return err
		}
		o.learn(r)
	}
	return nil
}

// learn takes in a record if it says who a host is. What the operator has not signed says nothing.
func (o *opener) learn(r events.Record) {
	if r.Bucket != events.Control || !strings.HasPrefix(r.Key, events.IdentityKey("")) || o.keys == nil || !o.keys.Keyed() {
		return
	}
	if o.keys.Learn(r) == nil {
		_ = o.judge.Learn(r)
	}
}
