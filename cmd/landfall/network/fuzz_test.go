package network

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/landfall/landfall/docs"
)

// FuzzParse: whatever stands in the file, it is a network or an *Error, never a panic or another error.
func FuzzParse(f *testing.F) {
	f.Add(docs.ExampleNetwork)
	f.Add([]byte(small))
	for _, c := range bad {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := Parse("network.yml", data)
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%T: %v", err, err)
		}
	})
}

// FuzzPushed: whatever stands in the log as pushed configuration, a host takes it as a whole, or
// refuses it as a whole; what it takes changes nothing that needs a restart.
func FuzzPushed(f *testing.F) {
	n, err := Parse("network.yml", docs.ExampleNetwork)
	if err != nil {
		f.Fatal(err)
	}
	fixed := n.Fixed()
	f.Add(n.Pushable())
	f.Add("line: { maxSize: 7 }")
	f.Add("store: { url: x }")
	f.Add("loadBalancer: { terms: { mspt: { weight: 0 } } }")
	f.Add("- x")
	f.Fuzz(func(t *testing.T, text string) {
		got, faults := n.WithPushed(text)
		if (got == nil) == (len(faults) == 0) {
			t.Fatalf("%v, and the faults %v", got, faults)
		}
		if got != nil && !reflect.DeepEqual(got.Fixed(), fixed) {
			t.Errorf("%q changes what needs a restart", text)
		}
	})
}

// FuzzPermissions: whatever stands in permissions.yml, it is permissions or faults.
func FuzzPermissions(f *testing.F) {
	f.Add([]byte("defaults: { rtp.use: true }\ngroups: { staff: { grant: [rtp.*], players: [Ada] } }\ntrust: []\n"))
	f.Add([]byte("groups: { staff: { players: Ada } }"))
	f.Add([]byte("{}"))
	f.Add([]byte("- x"))
	dir := f.TempDir()
	n, err := Parse(filepath.Join(dir, "network.yml"), []byte(small))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(n.File(n.Permissions), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, faults := n.ReadPermissions(); (got == nil) == (len(faults) == 0) {
			t.Fatalf("%v, and the faults %v", got, faults)
		}
	})
}
