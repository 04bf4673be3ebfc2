package main

import (
	"encoding/hex"

	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// loginsOf are those of a network's store. Where hosts have keys of their own, keys knows what
// the operator says of them: each open key logs in, and the secret does for the hosts that it
// still speaks for. Else it is the hosts of the file, by their roles, and the verbs.
func loginsOf(n *network.Network, secrets [][]byte, keys *events.Keyring) []embedded.User {
	known := keys.Identities()
	root, named := known[events.RootID]
	var users []embedded.User
	if operator, err := operatorKeyOf(n); operator != nil && err == nil {
		users = append(users, embedded.User{Role: streams.RoleOperator, ID: events.RootID, Key: streams.EncodePublic(operator)})
	}
	for id, f := range known {
		if id == events.RootID {
			continue // from network.yml, whatever the log says
		}
		for _, k := range f.Keys {
			if raw, err := hex.DecodeString(k.Key); err == nil && !k.Closed {
				users = append(users, embedded.User{Role: roleOfIdentity(f.Role), ID: id, Key: streams.EncodePublic(raw)})
			}
		}
	}
	if named && len(root.Alone) > 0 {
		return users
	}
	for _, secret := range secrets {
		users = append(users, readerLogin(secret), operatorLogin(secret))
		if n.HasAPI() {
			users = append(users, programLogin(secret))
		}
		for id, x := range n.Hosts {
			if len(known[events.HostID(id)].Alone) > 0 {
				continue
			}
			role := roleOf(n, x)
			name, password := streams.Login(secret, role, events.HostID(id))
			users = append(users, embedded.User{Role: role, ID: events.HostID(id), Name: name, Password: password})
			if x.IsAPI() { // it writes down what is decided over it
				name, password := streams.Login(secret, streams.RoleOperator, events.HostID(id))
				users = append(users, embedded.User{Role: streams.RoleOperator, ID: events.HostID(id), Name: name, Password: password})
			}
		}
	}
	return users
}

// roleOfIdentity is what an identity may do in the store.
func roleOfIdentity(r events.IdentityRole) streams.Role {
	switch r {
	case events.IdentityBackend:
		return streams.RoleBackend
	case events.IdentityProxy:
		return streams.RoleDispatcher
	case events.IdentityOperator:
		return streams.RoleOperator
	case events.IdentityAuditor:
		return streams.RoleAuditor
	}
	return streams.RoleAuditor
}
