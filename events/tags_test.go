package events

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// bodies are the structs that travel in requests, answers and news.
func bodies() []any {
	return []any{
		ReserveAsk{}, ReserveAnswer{}, ReleaseAsk{}, MoveAsk{}, TellAsk{}, SeenAsk{}, Answer{}, RequestAsk{}, RequestAnswer{},
		ArrivedAsk{}, ArrivedAnswer{}, PlacedAsk{}, StateAsk{}, StateAnswer{}, CancelAsk{}, TriggerAsk{}, ConfigAsk{}, SettingsAsk{}, SettingsAnswer{}, WhoIsAsk{}, WhoIsAnswer{}, HoldsAsk{}, Joined{}, Left{}, Coming{},
	}
}

// Every exported field of everything that travels has literal, unique names, and a type
// that every language reads the same way.
func TestTags(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, k := range Catalog {
		checkTags(t, reflect.TypeOf(k.New()).Elem(), seen)
	}
	for _, b := range bodies() {
		checkTags(t, reflect.TypeOf(b), seen)
	}
	if len(seen) < 40 {
		t.Errorf("only %d structs were looked at", len(seen))
	}
}

func checkTags(t *testing.T, typ reflect.Type, seen map[reflect.Type]bool) {
	t.Helper()
	if seen[typ] {
		return
	}
	seen[typ] = true
	wire, text := map[string]bool{}, map[string]bool{}
	for f := range typ.Fields() {
		where := typ.Name() + "." + f.Name
		if !f.IsExported() || f.Anonymous {
			t.Errorf("%s: want exported fields, none embedded", where)
		}
		optional := checkTag(t, where, f.Tag.Get("msgpack"), wirePattern, wire)
		if checkTag(t, where, f.Tag.Get("json"), textPattern, text) != optional {
			t.Errorf("%s: omitempty in one tag only", where)
		}
		if k := f.Type.Kind(); optional && (k == reflect.Struct || k == reflect.Array || k == reflect.Slice) {
			t.Errorf("%s: omitempty has no clear meaning for a %s", where, f.Type)
		}
		if (f.Type.Kind() == reflect.Pointer) && !optional {
			t.Errorf("%s: a pointer is what may be absent: want omitempty", where)
		}
		checkWireType(t, where, f.Type, seen)
	}
}

var (
	wirePattern = regexp.MustCompile(`^[a-z]{1,12}$`)
	textPattern = regexp.MustCompile(`^[a-z][a-zA-Z]{0,20}$`)
)

func checkTag(t *testing.T, where, tag string, pattern *regexp.Regexp, used map[string]bool) (optional bool) {
	t.Helper()
	name, option, has := strings.Cut(tag, ",")
	if !pattern.MatchString(name) || has && option != "omitempty" {
		t.Errorf("%s: tag %q: want a name like %s, and nothing or omitempty behind it", where, tag, pattern)
	}
	if used[name] {
		t.Errorf("%s: name %q stands twice", where, name)
	}
	used[name] = true
	return has
}

func checkWireType(t *testing.T, where string, typ reflect.Type, seen map[reflect.Type]bool) {
	t.Helper()
	switch {
	case typ == tokenType:
	case typ == reflect.TypeFor[time.Time]() || typ == reflect.TypeFor[time.Duration]():
		t.Errorf("%s: a %s; lengths travel as milliseconds, times in headers", where, typ)
	case typ.Kind() == reflect.Struct:
		checkTags(t, typ, seen)
	case typ.Kind() == reflect.Pointer, typ.Kind() == reflect.Slice:
		checkWireType(t, where, typ.Elem(), seen)
	case typ.Kind() == reflect.Array:
		if typ.Len() != 16 || typ.Elem().Kind() != reflect.Uint8 {
			t.Errorf("%s: an array of %s; only ids are arrays", where, typ)
		}
	default:
		switch typ.Kind() {
		case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		default:
			t.Errorf("%s: a %s does not travel", where, typ)
		}
	}
}

// Structs of the same JSON and MessagePack meaning keep one name for one thing: a field
// called "inc" is an incarnation everywhere.
func TestOneNameForOneType(t *testing.T) {
	types := map[string]map[string]string{}
	note := func(typ reflect.Type) {
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
			if types[name] == nil {
				types[name] = map[string]string{}
			}
			types[name][f.Type.String()] = typ.Name()
		}
	}
	for _, k := range Catalog {
		note(reflect.TypeOf(k.New()).Elem())
	}
	for _, b := range bodies() {
		note(reflect.TypeOf(b))
	}
	for _, name := range []string{"inc", "player", "transfer", "token", "claim", "server", "join", "ttl", "promise", "n", "code", "detail"} {
		if len(types[name]) != 1 {
			t.Errorf("%q is of several types: %v", name, types[name])
		}
	}
}
