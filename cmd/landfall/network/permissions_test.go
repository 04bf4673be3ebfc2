package network

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// permissionsIn reads a permissions.yml beside a small network.yml.
func permissionsIn(t *testing.T, text string) (*Permissions, []*Error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "permissions.yml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := Parse(filepath.Join(dir, "network.yml"), []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	return n.ReadPermissions()
}

// TestThePermissionsOfThePage: what docs/permissions.md shows is read as it says.
func TestThePermissionsOfThePage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	sample, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/permissions.md has no yaml block")
	}
	got, faults := permissionsIn(t, sample)
	if len(faults) > 0 {
		t.Fatal(faults[0])
	}
	want := &Permissions{
		Defaults: map[string]bool{"rtp.regions.end": false},
		Groups: map[string]Group{
			"staff": {
				Grant: []string{"rtp.servers.*", "rtp.unqueued", "rtp.nocooldown"}, Deny: []string{"rtp.servers.vault"},
				Players: []string{"Ada", "069a79f4-44e9-4726-a5be-fca90e38aaf5"},
			},
			"banned-from-travel": {Grant: []string{}, Deny: []string{"*"}, Players: []string{"Mallory"}},
		},
		Trust: []string{"survival-1"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestNoPermissionsFile(t *testing.T) {
	n, err := Parse(filepath.Join(t.TempDir(), "network.yml"), []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if p, faults := n.ReadPermissions(); len(faults) > 0 || !reflect.DeepEqual(p, &Permissions{}) {
		t.Errorf("got %+v, %v", p, faults)
	}
	if p, faults := permissionsIn(t, ""); len(faults) > 0 || len(p.Defaults)+len(p.Groups)+len(p.Trust) != 0 {
		t.Errorf("an empty file is %+v, %v", p, faults)
	}
}

func TestBadPermissions(t *testing.T) {
	const nodes = "rtp.use, rtp.unqueued, rtp.nocooldown, rtp.onevent.firstjoin, rtp.onevent.join, rtp.servers.<id>, rtp.regions.<id>, the end of one replaced by *, or *"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"not yaml", "groups: [\n", []string{"permissions.yml:1: not YAML: sequence end token ']' not found"}},
		{"not a map", "- a\n", []string{"permissions.yml:1: the file is not a map of keys; allowed: defaults, groups, trust"}},
		{"unknown keys", "group: {}\ngroups:\n  a:\n    grants: []\n", []string{
			"permissions.yml:1: group: unknown key, did you mean \"groups\"?; allowed: defaults, groups, trust",
			`permissions.yml:4: groups.a.grants: unknown key, did you mean "grant"?; allowed: grant, deny, players`,
		}},
		{"a misspelt node", "defaults:\n  rtp.use: true\n  rtp.unqueud: true\n", []string{
			`permissions.yml:3: defaults.rtp.unqueud: the key "rtp.unqueud" is not allowed; allowed: ` + nodes,
		}},
		{"a pattern inside", "groups: { a: { grant: [rtp.*.one] } }\n", []string{
			`permissions.yml:1: groups.a.grant: "rtp.*.one" is not allowed; allowed: a list of ` + nodes,
		}},
		{"not a grant", "defaults: { rtp.use: yes }\n", []string{`permissions.yml:1: defaults.rtp.use: "yes" is not true or false; allowed: true, false`}},
		{"a name that is a number", "groups:\n  a: { players: [Ada, 12345] }\n", []string{
			"permissions.yml:2: groups.a.players: 12345 is not allowed; allowed: a list of names and UUIDs, in quotes when a name is a number",
		}},
		{"given twice", "groups:\n  a: {}\n  a: {}\n", []string{"permissions.yml:3: a: is given twice; allowed: once"}},
		{"trust of a stranger and of a proxy", "groups: {}\ntrust: [survival-1, survival-9, proxy-1]\n", []string{
			`permissions.yml:2: trust: "survival-9" is not under hosts, did you mean "survival-1"?; allowed: survival-1`,
			`permissions.yml:2: trust: proxy-1 is a proxy: players connect to it, and nobody can be sent there; allowed: survival-1`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, faults := permissionsIn(t, c.text)
			var got []string
			for _, f := range faults {
				f.File = filepath.Base(f.File)
				got = append(got, f.Error())
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
