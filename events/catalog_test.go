package events

import (
	"bytes"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"testing"
)

func TestCatalog(t *testing.T) {
	pattern := regexp.MustCompile(`^landfall\.(transfer|session|control|audit|fleet|limit|route|checkpoint)\.[a-z]+\.v[1-9][0-9]*$`)
	entity := map[Bucket]string{Transfers: "transfer", Sessions: "session", Control: "control", Audit: "audit", Fleet: "fleet", Limits: "limit", Routes: "route", Checkpoints: "checkpoint"}
	types, structs := map[string]bool{}, map[reflect.Type]bool{}
	for _, k := range Catalog {
		f := k.New()
		typ := reflect.TypeOf(f)
		if m := pattern.FindStringSubmatch(k.Type); m == nil || m[1] != entity[k.Bucket] {
			t.Errorf("%s of %s: want landfall.<entity of the bucket>.<fact>.v<n>", k.Type, k.Bucket)
		}
		if typ.Kind() != reflect.Pointer || typ.Elem().Kind() != reflect.Struct {
			t.Errorf("%s makes %s, want a pointer to a struct", k.Type, typ)
		}
		if types[k.Type] || structs[typ] {
			t.Errorf("%s (%s) stands twice", k.Type, typ)
		}
		types[k.Type], structs[typ] = true, true
		if got, err := KindOf(f); err != nil || got.Type != k.Type || TypeName(f) != k.Type {
			t.Errorf("KindOf(%T) = %s, %v, want %s", f, got.Type, err, k.Type)
		}
		if _, ok := f.(TransferFact); ok != (k.Bucket == Transfers) {
			t.Errorf("%s is a TransferFact: %v, stands in %s", k.Type, ok, k.Bucket)
		}
		if k.New() == f {
			t.Errorf("%s makes the same value twice", k.Type)
		}
	}
}

// The zero value of each fact goes to bytes and back, as registering a type must prove.
func TestCatalogRoundTrip(t *testing.T) {
	for _, k := range Catalog {
		zero, back := k.New(), k.New()
		raw, err := Marshal(zero)
		if err != nil {
			t.Errorf("%s: %v", k.Type, err)
			continue
		}
		if err := UnmarshalExact(raw, back); err != nil || !reflect.DeepEqual(zero, back) {
			t.Errorf("%s came back as %+v, %v", k.Type, back, err)
		}
		if again := must(Marshal(back)); !bytes.Equal(raw, again) {
			t.Errorf("%s: %x, then %x", k.Type, raw, again)
		}
	}
}

func TestFactOutsideTheCatalog(t *testing.T) {
	stranger := struct{ *Failed }{new(Failed)}
	if _, err := KindOf(stranger); err == nil {
		t.Error("KindOf a fact that is not in the catalog: no error")
	}
	if _, err := Seal(corpusKeyring(), Envelope{Source: host(SourceEdge, "e")}, stranger); err == nil {
		t.Error("Seal a fact that is not in the catalog: no error")
	}
	if name := TypeName(stranger); name != "" {
		t.Errorf("TypeName = %q, want none", name)
	}
}

// The terminal facts are the four ends of a transfer and nothing else.
func TestTerminal(t *testing.T) {
	ends := map[string]bool{}
	for _, k := range Catalog {
		if f, ok := k.New().(TransferFact); ok && Terminal(f) {
			ends[k.Type] = true
		}
	}
	want := []string{
		"landfall.transfer.cancelled.v1", "landfall.transfer.completed.v1", "landfall.transfer.failed.v1", "landfall.transfer.superseded.v1",
	}
	if got := slices.Sorted(maps.Keys(ends)); !slices.Equal(got, want) {
		t.Errorf("terminal facts are %v, want %v", got, want)
	}
}
