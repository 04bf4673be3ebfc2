package network

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

const page = "../../../docs/configuration.md"

// TestConfigurationPage keeps docs/configuration.md equal to the table. After a change of the table:
//
//	go test ./cmd/landfall/network -run ConfigurationPage -update
func TestConfigurationPage(t *testing.T) {
	want := configurationPage()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s differs from the table of keys; write it with: go test ./cmd/landfall/network -run ConfigurationPage -update", page)
	}
}

func configurationPage() string {
	var b strings.Builder
	b.WriteString(`# network.yml, key by key

Written from the program's own table of keys; [network.yml](network.yml) is the annotated example.
A key that the file leaves out takes the default. Any other key, and any other value, is refused with file and line.

A running host takes on what is marked *live* when it gets SIGHUP: it reads this file and those of the messages and
permissions again, adopts all of it or, when there is a fault, nothing, and names the other keys that differ: they need a restart.
"landfall config diff" tells beforehand. "landfall config push" puts the live keys, but for paths of files, into force on all
hosts at once; see [hosts](hosts.md).

| key | default | allowed | live | meaning |
|---|---|---|---|---|
`)
	for _, k := range keys {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k.Path, defaultCell(k), cell(k.Allowed()), liveCell(k), cell(k.Doc))
	}
	b.WriteString("\n## Not in this version\n\nAccepted by the file's form, refused at the start with `NOT_IN_THIS_VERSION`:\n\n")
	b.WriteString("- `store.replicas`: 3 with an embedded store\n")
	for _, f := range refused {
		values := "any value of its own"
		if f.Values != nil {
			values = "`" + strings.Join(f.Values, "`, `") + "`"
		}
		fmt.Fprintf(&b, "- `%s`: %s; use %s\n", f.Key, values, f.Remedy)
	}
	b.WriteString("\nAccepted and checked, without an effect yet; the start says so for each one the file changes:\n\n")
	for _, f := range later {
		fmt.Fprintf(&b, "- `%s`\n", f.Key)
	}
	return b.String()
}

func defaultCell(k Key) string {
	switch {
	case k.Required:
		return "required"
	case k.Default == "" || k.Default == `""`:
		return ""
	case k.Default == shippedTerms:
		return "as in the example"
	default:
		return "`" + k.Default + "`"
	}
}

func liveCell(k Key) string {
	if k.Live {
		return "live"
	}
	return ""
}

func cell(s string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(s) }
