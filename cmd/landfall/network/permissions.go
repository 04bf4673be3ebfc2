package network

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
)

// Permissions is a checked permissions.yml: what the operator says that players may do. It is not changed after
// loading and may be shared.
type Permissions struct {
	Defaults map[string]bool  `yaml:"defaults"` // by node
	Groups   map[string]Group `yaml:"groups"`
	Trust    []string         `yaml:"trust"`
}

// Group grants and denies nodes to its players, who are names or UUIDs.
type Group struct {
	Grant   []string `yaml:"grant"`
	Deny    []string `yaml:"deny"`
	Players []string `yaml:"players"`
}

// permissionKeys is the table of permissions.yml.
var permissionKeys = []Key{
	{Path: "defaults", Kind: Map, Default: "{}"},
	{Path: "defaults.<node>", Kind: Bool},
	{Path: "groups", Kind: Map, Default: "{}"},
	{Path: "groups.<id>.grant", Kind: Nodes, Default: "[]"},
	{Path: "groups.<id>.deny", Kind: Nodes, Default: "[]"},
	{Path: "groups.<id>.players", Kind: Players, Default: "[]"},
	{Path: "trust", Kind: IDs, Default: "[]"},
}

var permissionsRoot = newSchema(permissionKeys)

const allowedNodes = "rtp.use, rtp.unqueued, rtp.nocooldown, rtp.onevent.firstjoin, rtp.onevent.join, rtp.servers.<id>, rtp.regions.<id>, the end of one replaced by *, or *"

var (
	nodeForm   = regexp.MustCompile(`^(rtp\.(use|unqueued|nocooldown|onevent\.(firstjoin|join)|(servers|regions)\.` + idPattern + `)|(rtp\.((onevent|servers|regions)\.)?)?\*)$`)
	playerForm = regexp.MustCompile(`^[^\s\x00-\x1f\x7f]{1,64}$`)
)

func isNode(s string) bool { return nodeForm.MatchString(s) }

func isPlayer(s string) bool { return playerForm.MatchString(s) }

// ReadPermissions reads the file of permissions that network.yml names, and returns all faults it can find, in the
// order of the file. A file that is not there leaves every node at its default.
func (n *Network) ReadPermissions() (*Permissions, []*Error) {
	file, p := n.File(n.Permissions), &Permissions{}
	data, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, []*Error{{File: file, Code: CodeMissing, Msg: "cannot be read: " + err.Error(), cause: err}}
	}
	top, fault := permissionsRoot.document(file, data)
	if fault != nil {
		return nil, []*Error{fault}
	}
	checked, faults := permissionsRoot.read(file, top, p)
	if len(faults) > 0 {
		slices.SortStableFunc(faults, func(a, b *Error) int { return a.Line - b.Line })
		return nil, faults
	}
	for _, id := range p.Trust {
		if code, problem := n.noBackend(id); problem != "" {
			faults = append(faults, &Error{
				File: file, Line: checked.lineOf("trust"), Key: "trust", Code: code,
				Msg: problem + "; allowed: " + listed(n.backendIDs(), "a host with advertise"),
			})
		}
	}
	return p, faults
}

// backendIDs are the hosts with a game server.
func (n *Network) backendIDs() []string {
	return slices.DeleteFunc(n.HostIDs(), func(id string) bool { return !n.Hosts[id].IsBackend() })
}
