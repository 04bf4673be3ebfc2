package actors

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
)

// TestPermitted: groups before defaults before what the program ships; in each the longest
// pattern wins, and a denial over a grant of the same length.
func TestPermitted(t *testing.T) {
	rules := NewPermissions(PermissionsConfig{
		Defaults: []events.Permit{{Node: "rtp.regions.*"}, {Node: "rtp.regions.spawn", Granted: true}, {Node: NodeJoin, Granted: true}},
		Groups: []PermissionGroup{
			{Grant: []string{"rtp.servers.*", "rtp.regions.end", NodeUnqueued}, Deny: []string{"rtp.servers.secret"}, Names: []string{"Alex", "Both"}},
			{Grant: []string{"*"}, Deny: []string{NodeUnqueued}, Names: []string{"both"}, Players: []events.PlayerID{steve}},
			{Grant: []string{"rtp.servers.secret.*", "rtp.serv*"}, Names: []string{"Pat"}},
		},
	})
	alex, both, pat := events.OfflinePlayer("Alex"), events.OfflinePlayer("Both"), events.OfflinePlayer("Pat")
	for _, row := range []struct {
		player events.PlayerID
		name   string
		node   string
		want   bool
	}{
		{alex, "Alex", "rtp.servers.one", true},
		{alex, "aLEX", "rtp.servers.one", true},
		{alex, "Alexa", "rtp.servers.one", false},
		{alex, "Alex", "rtp.servers.secret", false},
		{alex, "Alex", NodeUnqueued, true},
		{both, "Both", NodeUnqueued, false},
		{both, "Both", "rtp.servers.secret", false},
		{steve, "", "rtp.servers.secret", true},
		{steve, "another name", NodeNoCooldown, true},
		{steve, "", NodeUnqueued, false},
		{alex, "Alex", "rtp.regions.end", true},
		{alex, "Alex", "rtp.regions.spawn", true},
		{alex, "Alex", "rtp.regions.wild", false},
		{steve, "", "rtp.regions.wild", true},
		{pat, "Pat", "rtp.servers.secret", false},
		{pat, "Pat", "rtp.servers.x", false},
		{pat, "Pat", NodeUse, true},
		{pat, "Pat", NodeJoin, true},
		{pat, "Pat", NodeFirstJoin, true},
		{pat, "Pat", NodeNoCooldown, false},
	} {
		if got := rules.Permitted(row.player, row.name, row.node); got != row.want {
			t.Errorf("%q may %s: %v", row.name, row.node, got)
		}
	}
}

// TestShippedPermissions: regions are everybody's, servers by name and ways past the others are not.
func TestShippedPermissions(t *testing.T) {
	var none *Permissions
	for node, want := range map[string]bool{
		NodeUse: true, NodeFirstJoin: true, RegionNode("wild"): true,
		NodeJoin: false, NodeUnqueued: false, NodeNoCooldown: false, ServerNode("survival-1"): false, "rtp.unheard": false, "": false,
	} {
		if none.Permitted(steve, "Steve", node) != want || new(Permissions).Permitted(steve, "Steve", node) != want {
			t.Errorf("%s is not %v", node, want)
		}
	}
}

func TestWishNodes(t *testing.T) {
	for wish, want := range map[events.Wish][]string{
		{}:                         {NodeUse},
		{World: "w"}:               {NodeUse},
		{Region: "wild"}:           {NodeUse, "rtp.regions.wild"},
		{Pin: "b"}:                 {NodeUse, "rtp.servers.b"},
		{Pin: "b", Region: "wild"}: {NodeUse, "rtp.servers.b", "rtp.regions.wild"},
	} {
		if got := wishNodes(wish); !slices.Equal(got, want) {
			t.Errorf("%+v takes %v, want %v", wish, got, want)
		}
	}
}

// TestThePermissionsPage: docs/permissions.md lists the nodes, and who has them when nobody says otherwise.
func TestThePermissionsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(rtp[^`]*)` \\|.*\\| (yes|no) \\|$").FindAllStringSubmatch(string(page), -1) {
		told[strings.NewReplacer("<region>", "x", "<server>", "x").Replace(row[1])] = row[2]
	}
	nodes := []string{NodeUse, RegionNode("x"), ServerNode("x"), NodeUnqueued, NodeNoCooldown, NodeFirstJoin, NodeJoin}
	for _, node := range nodes {
		want := map[bool]string{true: "yes", false: "no"}[(*Permissions)(nil).Permitted(steve, "", node)]
		if told[node] != want {
			t.Errorf("%s: the page says %q, the program %q", node, told[node], want)
		}
	}
	if len(told) != len(nodes) {
		t.Errorf("the page lists %d nodes, there are %d", len(told), len(nodes))
	}
}
