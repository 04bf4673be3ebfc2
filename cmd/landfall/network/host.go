package network

import "slices"

// Host is what hosts.<id> says about one host: all of its settings that differ from its neighbours'.
type (
	Host struct {
		API                   string            `yaml:"api"`
		Mode                  string            `yaml:"mode"`
		Creds                 string            `yaml:"creds"`
		Edges                 []Listener        `yaml:"edges"`
		Game                  string            `yaml:"game"`
		Advertise             string            `yaml:"advertise"`
		PublicAddress         string            `yaml:"publicAddress"` // after loading: Advertise when the file has none
		ProxyProtocol         string            `yaml:"proxyProtocol"`
		RewriteTransferIntent bool              `yaml:"rewriteTransferIntent"`
		RCON                  *RCON             `yaml:"rcon"` // nil: no stock server behind this host
		Log                   string            `yaml:"log"`
		Archive               string            `yaml:"archive"`
		Relay                 Relay             `yaml:"relay"`
		Regions               map[string]Region `yaml:"regions"`
	}

	// Listener is one address that players connect to.
	Listener struct {
		Game            string            `yaml:"game"`
		Listen          string            `yaml:"listen"`
		RedirectAddress string            `yaml:"redirectAddress"`
		Dialled         map[string]string `yaml:"dialled"`
	}

	RCON struct {
		Address      string `yaml:"address"`
		PasswordFile string `yaml:"passwordFile"`
	}

	Relay struct {
		Listen  string `yaml:"listen"`
		Backend string `yaml:"backend"`
		Proxy   string `yaml:"proxy"`
	}

	// Region is an area of a world where players may be placed; distances are blocks.
	Region struct {
		World     string `yaml:"world"`
		Centre    []int  `yaml:"centre"` // x, z
		MinRadius int    `yaml:"minRadius"`
		MaxRadius int    `yaml:"maxRadius"`
		Keep      int    `yaml:"keep"`
		Exclude   []Area `yaml:"exclude"`
	}

	// Area is a rectangle of whole columns, both corners included.
	Area struct {
		Min []int `yaml:"min"` // x, z
		Max []int `yaml:"max"`
	}
)

// IsEdge tells whether players connect to this host.
func (h Host) IsEdge() bool { return len(h.Edges) > 0 }

// SaysLate tells whether the clients of this listener say who they are only after a server was chosen.
func (l Listener) SaysLate() bool { return l.Game != "minecraft" }

// IsRouter tells whether the edges of this host route by token alone: it dispatches nothing.
func (h Host) IsRouter() bool { return h.Mode == "router" }

// IsAPI tells whether programs connect to this host.
func (h Host) IsAPI() bool { return h.API != "" }

// IsRelay tells whether this host stands between a foreign proxy and its backend.
func (h Host) IsRelay() bool { return h.Relay.Listen != "" }

// IsBackend tells whether a game server stands behind this host.
func (h Host) IsBackend() bool { return h.RCON != nil || len(h.Regions) > 0 || h.Advertise != "" }

// IsLobby tells whether a backend only asks and never receives.
func (n *Network) IsLobby(id string) bool {
	return n.Hosts[id].IsBackend() && len(n.RegionsOf(id)) == 0
}

// RegionsOf are the regions that a backend offers: those of the file, and none where it is named as a lobby.
func (n *Network) RegionsOf(id string) map[string]Region {
	if slices.Contains(n.Routing.Lobbies, id) {
		return nil
	}
	return n.Hosts[id].Regions
}
