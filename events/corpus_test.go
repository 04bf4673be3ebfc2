package events

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files anew; of the corpus only what is missing")

const (
	corpusDir = "../testdata/events"
	corpusSum = "SHA256SUMS"
)

// stored is one file of the corpus.
type stored struct {
	Bucket Bucket          `json:"bucket"`
	Key    string          `json:"key"`
	Header Header          `json:"headers"`
	Body   string          `json:"body"` // hex
	Fact   json.RawMessage `json:"fact"` // what the body says
}

// The corpus is what releases have written. A file of it never changes and never goes.
func TestCorpusIsAddOnly(t *testing.T) {
	sums := readSums(t)
	files := corpusFiles(t)
	for _, name := range files {
		sum, listed := sums[name]
		if !listed {
			t.Errorf("%s is not listed in %s: run go test ./events -run Corpus -update", name, corpusSum)
		} else if got := sumOf(t, name); got != sum {
			t.Errorf("%s has changed (%s, listed %s): what was written once stays readable; add a new sample instead", name, got[:8], sum[:8])
		}
	}
	for name := range sums {
		if !slices.Contains(files, name) {
			t.Errorf("%s is gone: a sample of the corpus is never removed", name)
		}
	}
}

// Every sample of the table is in the corpus, byte by byte as this build writes it.
func TestCorpusIsWhatWeWrite(t *testing.T) {
	keys := corpusKeyring()
	for _, s := range samples() {
		m := s.seal(t, keys)
		want := fileOf(t, m, s.fact)
		name := s.String() + ".json"
		if *update {
			addToCorpus(t, name, want)
		}
		got, err := os.ReadFile(filepath.Join(corpusDir, name))
		if err != nil {
			t.Errorf("read sample: %v; run go test ./events -run Corpus -update", err)
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: this build writes\n%s\nthe corpus holds\n%s", name, want, got)
		}
	}
}

// Every file of the corpus, whoever wrote it, is read: verified, decoded, and written again
// to the same bytes.
func TestCorpusIsRead(t *testing.T) {
	keys := corpusKeyring()
	types := map[string]int{}
	for _, name := range corpusFiles(t) {
		f := readStored(t, name)
		types[f.Header[HeaderType]]++
		body, err := hex.DecodeString(f.Body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		e, refusal := Open(keys, Record{Bucket: f.Bucket, Key: f.Key, Seq: 1, Header: f.Header, Body: body})
		if refusal != nil {
			t.Errorf("%s: %v", name, refusal)
			continue
		}
		if e.ID.IsZero() || e.Key != f.Key || !e.Time.Equal(corpusTime()) {
			t.Errorf("%s: envelope %+v", name, e.Envelope)
		}
		if again := must(Marshal(e.Fact)); !bytes.Equal(again, body) {
			t.Errorf("%s: body\n%x written again\n%x", name, body, again)
		}
		sameJSON(t, name, e.Fact, f.Fact)
	}
	for _, k := range Catalog {
		if types[k.Type] < 1 {
			t.Errorf("%s has no sample in %s", k.Type, corpusDir)
		}
	}
}

// Together the samples of a type show every field set, and every field that may be absent absent.
func TestCorpusShowsEveryField(t *testing.T) {
	set, absent := map[string]bool{}, map[string]bool{}
	for _, s := range samples() {
		walkFields(reflect.ValueOf(s.fact), func(path string, optional bool, v reflect.Value) {
			set[path] = set[path] || !v.IsZero()
			absent[path] = absent[path] || v.IsZero() || !optional
		})
	}
	for _, path := range slices.Sorted(maps.Keys(set)) {
		if !set[path] {
			t.Errorf("no sample sets %s", path)
		}
		if !absent[path] {
			t.Errorf("no sample leaves out %s", path)
		}
	}
}

func walkFields(v reflect.Value, visit func(path string, optional bool, v reflect.Value)) {
	switch v.Kind() { //nolint:exhaustive // leaves have nothing inside
	case reflect.Pointer:
		if !v.IsNil() {
			walkFields(v.Elem(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkFields(v.Index(i), visit)
		}
	case reflect.Struct:
		for i, f := range shapeOf(v.Type()).fields {
			visit(v.Type().Name()+"."+f.wire, f.optional, v.Field(i))
			walkFields(v.Field(i), visit)
		}
	}
}

func sameJSON(t *testing.T, name string, fact Fact, want json.RawMessage) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(must(json.Marshal(fact)), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(want, &b); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%s: as JSON\n%v\nthe corpus says\n%v", name, a, b)
	}
}

func fileOf(t *testing.T, m Message, f Fact) []byte {
	t.Helper()
	out, err := json.MarshalIndent(stored{
		Bucket: m.Bucket, Key: m.Key, Header: m.Header, Body: hex.EncodeToString(m.Body), Fact: must(json.Marshal(f)),
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// addToCorpus writes a sample that is not there yet, and its line in the list.
func addToCorpus(t *testing.T, name string, content []byte) {
	t.Helper()
	path := filepath.Join(corpusDir, name)
	if _, err := os.Stat(path); err != nil {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // test data is public
			t.Fatal(err)
		}
	}
	sums := readSums(t)
	if _, listed := sums[name]; listed {
		return
	}
	sums[name] = sumOf(t, name)
	var list strings.Builder
	for _, n := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&list, "%s  %s\n", sums[n], n)
	}
	if err := os.WriteFile(filepath.Join(corpusDir, corpusSum), []byte(list.String()), 0o644); err != nil { //nolint:gosec // public
		t.Fatal(err)
	}
}

func readSums(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	raw, err := os.ReadFile(filepath.Join(corpusDir, corpusSum))
	if err != nil && !*update {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || len(sum) != 64 || out[name] != "" {
			t.Fatalf("%s: line %q: want <sha-256>  <file>, each file once", corpusSum, lines.Text())
		}
		out[name] = sum
	}
	return out
}

func corpusFiles(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(corpusDir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(corpusDir, path)
		if err == nil && !d.IsDir() && name != corpusSum && name != "README.md" {
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func sumOf(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(corpusDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw))
}

func readStored(t *testing.T, name string) (f stored) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(corpusDir, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return f
}

func shapeTypeOf(f Fact) reflect.Type { return reflect.TypeOf(f).Elem() }

// newLike makes a pointer to a zero value of v's type.
func newLike(v any) any { return reflect.New(reflect.TypeOf(v)).Interface() }
