package main

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// operatorKey reads the operator's key, or makes one that keep writes down.
func (k *kit) operatorKey(path string) (key streams.HostKey, keep func() error, err error) {
	if exists(path) {
		key, err = streams.ReadHostKey(path)
		return key, func() error { k.kept(path); return nil }, err
	}
	if key, err = streams.NewHostKey(streams.RoleOperator, events.RootID); err != nil {
		return key, nil, err
	}
	text, err := key.Text()
	return key, func() error { return k.make(path, text) }, err
}

// identities makes the keys of the hosts, and, for a network that has never run, the facts that
// say whose they are. In a network that runs, that is for `creds add`.
func (k *kit) identities(wanted bool) error {
	path := filepath.Join(k.dir, operatorFile)
	if k.net.Network.OperatorKey == "" {
		if !wanted {
			return nil
		}
		key, keep, err := k.operatorKey(path)
		if err == nil {
			err = keep()
		}
		if err == nil {
			k.lines = append(k.lines, fmt.Sprintf("Put into network.yml, on every host, and restart them: network: { operatorKey: %s }", key.Public()))
		}
		return err
	}
	public, err := operatorKeyOf(k.net)
	if err != nil {
		return err
	}
	if !exists(path) {
		return nil // kept elsewhere
	}
	root, err := streams.ReadHostKey(path)
	if err != nil {
		return err
	}
	if !root.Raw().Equal(public) {
		return fmt.Errorf("%s is not the key of network.operatorKey in network.yml: bring the right one, or remove it here", path)
	}
	if exists(k.net.File(k.net.Store.Dir)) {
		return nil
	}
	return k.seal(root)
}

// seal makes the keys that are lacking, and signs for each of them who bears it.
func (k *kit) seal(root streams.HostKey) error {
	path := k.net.File(sealedFile)
	facts, err := readSealed(path)
	if err != nil {
		return err
	}
	sealed := map[string]bool{}
	for _, f := range facts {
		sealed[f.Key] = true
	}
	if len(facts) > 0 {
		k.kept(path)
	}
	had := len(facts)
	put := func(f events.IdentitySet) error {
		if sealed[events.IdentityKey(f.Host)] {
			return nil
		}
		fact, err := sealIdentity(root, f)
		facts = append(facts, fact)
		return err
	}
	start := ends{}.after()
	if err := put(events.IdentitySet{Host: events.RootID, Role: events.IdentityOperator, Keys: []events.HostKey{{Key: hex.EncodeToString(root.Raw()), Spans: start}}, Alone: start, Who: userName(), Why: "init"}); err != nil {
		return err
	}
	for _, id := range k.net.HostIDs() {
		if k.net.Hosts[id].Creds == "" {
			continue
		}
		key, role, err := k.hostKey(id)
		if err != nil {
			return err
		}
		f := events.IdentitySet{Host: events.HostID(id), Role: role, Keys: []events.HostKey{{Key: hex.EncodeToString(key.Raw()), Spans: start}}, Alone: start, Who: userName(), Why: "init"}
		if err := put(f); err != nil {
			return err
		}
	}
	if len(facts) == had {
		return nil
	}
	if err := writeSealed(path, facts); err != nil {
		return err
	}
	if had == 0 {
		k.lines = append(k.lines, "made  "+path)
	}
	return nil
}

// hostKey reads the key of a host, or makes it.
func (k *kit) hostKey(id string) (streams.HostKey, events.IdentityRole, error) {
	role := events.IdentityBackend
	switch roleOf(k.net, k.net.Hosts[id]) {
	case streams.RoleDispatcher:
		role = events.IdentityProxy
	case streams.RoleAuditor:
		role = events.IdentityAuditor
	case streams.RoleBackend, streams.RoleOperator, streams.RoleProgram, streams.RoleArchivist:
	}
	path := k.net.File(k.net.Hosts[id].Creds)
	if exists(path) {
		k.kept(path)
		key, err := streams.ReadHostKey(path)
		return key, role, err
	}
	key, err := streams.NewHostKey(roleOfIdentity(role), events.HostID(id))
	if err != nil {
		return key, role, err
	}
	text, err := key.Text()
	if err != nil {
		return key, role, err
	}
	return key, role, k.make(path, text)
}

// sealIdentity signs an identity fact for a log that has none of that host.
func sealIdentity(root streams.HostKey, f events.IdentitySet) (events.SealedFact, error) {
	m, err := events.Seal(events.NewKeyring().As(root.Private), events.Envelope{
		ID: newID(), Source: events.Source{Kind: events.SourceOperator, ID: events.RootID, Incarnation: newID()}, Time: time.Now(), Key: events.IdentityKey(f.Host),
	}, &f)
	if err != nil {
		return events.SealedFact{}, err
	}
	return events.SealedOf(events.Record{Bucket: m.Bucket, Key: m.Key, Header: m.Header, Body: m.Body}), nil
}
