package edge

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestLoginStartOfEveryVersion(t *testing.T) {
	id := offlineBot0[:]
	no, yes := []byte{0}, []byte{1}
	for _, c := range []struct {
		name     string
		protocol int32
		rest     [][]byte
		uuid     bool
	}{
		{"1.8.8", 47, nil, false},
		{"1.16.5", 754, nil, false},
		{"1.18.2", 758, nil, false},
		{"1.19 unsigned", 759, [][]byte{no}, false},
		{"1.19 signed", 759, [][]byte{signature()}, false},
		{"1.19.2 bare", 760, [][]byte{no, no}, false},
		{"1.19.2 unsigned", 760, [][]byte{no, yes, id}, true},
		{"1.19.2 signed", 760, [][]byte{signature(), yes, id}, true},
		{"1.19.2 signed without UUID", 760, [][]byte{signature(), no}, false},
		{"1.19.3 bare", 761, [][]byte{no}, false},
		{"1.19.3", 761, [][]byte{yes, id}, true},
		{"1.20.2", 764, [][]byte{id}, true},
		{"1.20.6", 766, [][]byte{id}, true},
		{"1.21.1", 767, [][]byte{id}, true},
		{"1.21.11", 774, [][]byte{id}, true},
		{"26.1", 775, [][]byte{id}, true},
		{"a later release with a new field", 900, [][]byte{id, {1, 2, 3}}, true},
		{"a later release with one new byte", 900, [][]byte{id, no}, true},
		{"snapshot", snapshotProtocol, [][]byte{id}, true},
		{"snapshot with a new field", snapshotProtocol, [][]byte{id, {7, 7, 7, 7}}, true},
		{"snapshot of 1.19", snapshotProtocol, [][]byte{signature()}, false},
		{"snapshot of 1.19.1", snapshotProtocol, [][]byte{signature(), yes, id}, true},
		{"snapshot of 1.19.3", snapshotProtocol, [][]byte{yes, id}, true},
		{"snapshot without UUID", snapshotProtocol, nil, false},
	} {
		f, err := readFrame(reader(start("Bot0", c.rest...)), 0)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		l, err := parseLoginStart(f.payload(), c.protocol)
		if err != nil || l.name != "Bot0" || l.hasUUID != c.uuid || c.uuid && l.uuid != offlineBot0 {
			t.Errorf("%s: %+v, error %v", c.name, l, err)
		}
	}
}

func TestLoginStartMalformed(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty":                 {},
		"no name":               start("")[2:],
		"name of 17":            start(strings.Repeat("n", 17))[2:],
		"name cut":              {4, 'B', 'o'},
		"flag without UUID":     start("Bot0", []byte{1})[2:],
		"cut UUID":              start("Bot0", []byte{1}, offlineBot0[:9])[2:],
		"cut signature":         start("Bot0", signature()[:100])[2:],
		"signature of 2³¹ odds": start("Bot0", []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})[2:],
	} {
		if l, err := parseLoginStart(b, 760); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %+v, error %v, want malformed", name, l, err)
		}
	}
}

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"Bot0": true, "a": true, "_Sixteen_Letters": true,
		"": false, "SeventeenLetters_": false, "a b": false, "ü": false, "a;b": false, "@a": false, "a\n": false,
	} {
		if validName(name) != want {
			t.Errorf("validName(%q) = %v", name, !want)
		}
	}
}

func TestDisconnectIsJSON(t *testing.T) {
	text := `It's "full" ` + "\n§c" + strings.Repeat("long ", 60)
	f, err := readFrame(reader(appendDisconnect(nil, text)), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := disconnectText(t, f); got != text {
		t.Fatalf("text %q, want %q", got, text)
	}
}

// disconnectText reads what the player reads.
func disconnectText(t *testing.T, f frame) string {
	t.Helper()
	c := cursor{b: f.payload()}
	body := c.string(maxFrame, "text")
	var text struct{ Text string }
	if err := json.Unmarshal([]byte(body), &text); err != nil || c.err != nil || len(c.rest()) != 0 {
		t.Fatalf("disconnect % x: %v, %v", f.raw, err, c.err)
	}
	return text.Text
}

func FuzzLoginStart(f *testing.F) {
	for _, o := range openings(f) {
		n, head := varInt(o.bytes)
		f.Add(o.bytes[int(n)+head+2:], o.protocol)
	}
	f.Add(start("Bot0", signature())[3:], int32(759))
	f.Add(start("Bot0", signature(), []byte{1}, offlineBot0[:])[3:], int32(760))
	f.Add(start("Bot0", offlineBot0[:], []byte{1})[2:], int32(snapshotProtocol))
	f.Fuzz(func(t *testing.T, b []byte, protocol int32) {
		l, err := parseLoginStart(b, protocol)
		if err != nil {
			if !errors.Is(err, errMalformed) {
				t.Fatalf("error %v is not malformed", err)
			}
			return
		}
		if l.name == "" || len([]rune(l.name)) > 16 || !l.hasUUID && l.uuid != [16]byte{} {
			t.Fatalf("accepted %+v", l)
		}
	})
}
