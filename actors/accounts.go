package actors

import (
	"fmt"
	"sync"

	"github.com/landfall/landfall/events"
)

// Accounts says how the game servers of a network name their players. The zero value says
// nothing, and every name is taken.
type Accounts string

// Accounts of a network.
const (
	OnlineAccounts  Accounts = "online"  // by the id of a checked account: a UUID of version 4
	OfflineAccounts Accounts = "offline" // by a UUID of version 3, made from the name
)

// Versions of the UUIDs that game servers give.
const (
	nameBased    = 3
	accountBased = 4
)

// refuse refuses a player whom a server names as servers of the other kind do: the same person
// would be two players of this network. Ids of any other version are those of other games, or of
// players from elsewhere.
func (a Accounts) refuse(server events.HostID, player events.PlayerID, name string) *events.Refusal {
	is, should := "offline", "online"
	switch version := player[6] >> 4; {
	case a == OnlineAccounts && version == nameBased:
	case a == OfflineAccounts && version == accountBased:
		is, should = should, is
	default:
		return nil
	}
	return events.Refuse(events.WrongAccounts, fmt.Sprintf(
		"%s knows %s by the id of %s mode, %s, but edge.identity is %s: set the same mode on all servers", server, name, is, player, should))
}

// oncePerLife tells the first of many, for each life of a backend.
type oncePerLife struct {
	mu   sync.Mutex
	seen map[events.HostID]events.Incarnation
}

func (o *oncePerLife) first(server events.HostID, life events.Incarnation) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if old, known := o.seen[server]; known && old == life {
		return false
	}
	if o.seen == nil {
		o.seen = map[events.HostID]events.Incarnation{}
	}
	o.seen[server] = life
	return true
}

// misnamed tells that a backend has announced a player by an id that is none of this network's:
// such a player has no session, and so no place in line beside that of the other id. It is
// audited once in each life of the backend.
func (d *Dispatcher) misnamed(from events.HostID, news events.Joined) bool {
	refusal := d.cfg.Accounts.refuse(from, news.Player, news.Name)
	if refusal == nil {
		return false
	}
	if d.accounts.first(from, news.Incarnation) {
		d.logger.Error("a player has two ids on this network", "server", from, "detail", refusal.Detail)
		source := events.Source{Kind: events.SourceBackend, ID: from, Incarnation: news.Incarnation}
		d.audit(events.Rejected{Source: source.String(), Code: refusal.Code, Subject: events.NewsOf(from, events.VerbJoined), Detail: refusal.Detail})
	}
	return true
}
