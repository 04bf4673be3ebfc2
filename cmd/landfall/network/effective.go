package network

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"time"
)

// Setting is one key as it holds, whether the file has it or not.
type Setting struct {
	Key string
	// Value is a bool, a number, a string, a list of them, or an empty map; lengths of time are strings.
	Value any
	// Line is where the file has the key; 0: the default holds.
	Line int
	// Live tells that a running host takes on a change of it, Pushable that operators can replace it on all of them.
	Live, Pushable bool

	entries []string // of open maps and lists that it lies in, the widest first
}

// Settings lists every key of the configuration as it holds, in the order of the table. Nothing in it is secret:
// the file only names where secrets are, and a login inside a URL is left out.
func (n *Network) Settings() []Setting { return n.listing().settings }

// listing is the whole configuration as a list.
type listing struct {
	n        *Network
	settings []Setting
	entries  map[string]bool // of open maps and lists
	around   []string        // those that the walk is in
}

func (n *Network) listing() *listing {
	l := &listing{n: n, entries: map[string]bool{}}
	l.walk(root, "", reflect.ValueOf(n.settings))
	return l
}

func (l *listing) walk(s *schema, path string, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch {
	case s.items != nil:
		for i := range v.Len() {
			l.entry(s.items, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case s.any != nil:
		l.open(s, path, v)
	case len(s.fields) > 0:
		for _, name := range s.names {
			l.walk(s.fields[name], join(path, name), fieldOf(v, name))
		}
	default:
		l.settings = append(l.settings, l.leaf(s.key, path, shownValue(v)))
	}
}

func (l *listing) open(s *schema, path string, v reflect.Value) {
	if v.Len() == 0 && s.key != nil {
		l.settings = append(l.settings, l.leaf(s.key, path, map[string]any{}))
	}
	for _, name := range sortedKeys(v) {
		l.entry(s.any, join(path, name.String()), v.MapIndex(name))
	}
}

func sortedKeys(m reflect.Value) []reflect.Value {
	names := m.MapKeys()
	slices.SortFunc(names, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	return names
}

func (l *listing) entry(s *schema, path string, v reflect.Value) {
	l.entries[path] = true
	l.around = append(l.around, path)
	l.walk(s, path, v)
	l.around = l.around[:len(l.around)-1]
}

func (l *listing) leaf(k *Key, path string, value any) Setting {
	return Setting{Key: path, Value: value, Line: l.n.checked.places[path].line, Live: k.Live, Pushable: k.pushable(), entries: slices.Clone(l.around)}
}

// fieldOf finds the field of a settings struct that stands for a key.
func fieldOf(v reflect.Value, name string) reflect.Value {
	for f, value := range v.Fields() {
		if f.Tag.Get("yaml") == name {
			return value
		}
	}
	panic("network: no field for the key " + name) // a test loads the example, which has every key
}

// loginInURL is what no screen shows of a URL.
var loginInURL = regexp.MustCompile(`://[^/@\s]*@`)

func shownValue(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Duration:
		return hours(x.Seconds())
	case string:
		return loginInURL.ReplaceAllString(x, "://…@")
	case []string:
		return append([]string{}, x...)
	}
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		return v.Int()
	default:
		return v.Interface()
	}
}
