package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
)

// TestImportMakesTheSameStore: what an export of the new store holds is what was imported, and
// the verbs say the same of both.
func TestImportMakesTheSameStore(t *testing.T) {
	t.Setenv(envSecret, encoded(realSecret)) // which has not signed the facts
	file := exportOf(t, sealedTape(t))
	home := t.TempDir()
	config := filepath.Join(home, "network.yml")
	text := "network: { name: my-network, enabled: true }\nstore: { dir: data, maxBytes: 2147483648 }\nhosts: { p: { edges: [{ listen: \"127.0.0.1:25565\" }] } }\nedge: { domain: play.example.net }\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := typed(t, "import", file, "--config", config); o.status != statusFailed || !strings.Contains(o.stderr, "give --accept-unverified") {
		t.Fatalf("without the key: %+v", o)
	}
	o := typed(t, "import", file, "--config", config, "--accept-unverified")
	if o.status != statusOK || !strings.Contains(o.stdout, "transfers    sequences 1 to 22\n") {
		t.Fatalf("import: %+v", o)
	}
	store := filepath.Join(home, "data")
	if was, is := typed(t, "verify", "--from-file", file), typed(t, "verify", "--store", store); is != was {
		t.Errorf("verify of the store %+v, of the file %+v", is, was)
	}
	for _, b := range exportBuckets {
		was, is := rowsOf(t, "--from-file", file, "--bucket", string(b)), rowsOf(t, "--store", store, "--bucket", string(b))
		if !reflect.DeepEqual(is, was) {
			t.Errorf("%s of the store\n%v\nof the file\n%v", b, is, was)
		}
	}
	if o := typed(t, "import", file, "--config", config, "--accept-unverified"); o.status != statusFailed || !strings.Contains(o.stderr, "never written over") {
		t.Errorf("over a store: %+v", o)
	}
	left, err := filepath.Glob(filepath.Join(home, ".landfall-import-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// rowsOf are the facts that a tail shows, without the time of storing, which an import cannot keep.
func rowsOf(t *testing.T, args ...string) []map[string]any {
	t.Helper()
	o := typed(t, append([]string{"tail", "--json"}, args...)...)
	if o.status != statusOK {
		t.Fatalf("tail %q: %+v", args, o)
	}
	rows := jsonLines(t, o.stdout)
	for _, row := range rows {
		delete(row, "stored")
	}
	return rows
}

// TestImportRefusesWhatDoesNotVerify and what is no file of ours.
func TestImportRefusesWhatDoesNotVerify(t *testing.T) {
	t.Setenv(envSecret, encoded(realSecret))
	log := sealedTape(t)
	changed := exportOf(t, tampered{history: log, change: func(r events.Record) (events.Record, bool) {
		return r, r.Bucket != events.Transfers || r.Seq != 9
	}})
	home := t.TempDir()
	config := filepath.Join(home, "network.yml")
	if err := os.WriteFile(config, []byte("network: { name: n, enabled: true }\nstore: { dir: data }\nhosts: { p: { edges: [{ listen: \"127.0.0.1:25565\" }] } }\nedge: { domain: play.example.net }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, file := range map[int]string{statusInconsistent: changed, statusFailed: config} {
		if o := typed(t, "import", file, "--config", config, "--accept-unverified"); o.status != want || o.stderr == "" {
			t.Errorf("%s: %+v, want status %d", file, o, want)
		}
	}
	if _, err := os.Stat(filepath.Join(home, "data")); err == nil {
		t.Error("a refused import left a store")
	}
}
