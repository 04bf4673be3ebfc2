package vintage

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/landfall/landfall/actors/edge/marker"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "|", "").Replace(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestForgedBytes: what the proxy writes, byte by byte, as clients of the game read it.
func TestForgedBytes(t *testing.T) {
	id := marker.ID(unhex(t, "00112233445566778899aabbccddeeff"))
	announced := AppendRedirect(nil, marker.Announce("survival-2", id), "play.example.net:42430")
	if len(announced) != 85 || !bytes.HasPrefix(announced, unhex(t, "00 00 00 51 D0 05 1D EA 01 4B 0A 31")) {
		t.Errorf("redirect with an announcement: % x", announced)
	}
	for what, row := range map[string]struct {
		got  []byte
		want string
	}{
		"redirect": {
			AppendRedirect(nil, "survival-2", "play.example.net"),
			"00 00 00 24 | D0 05 1D | EA 01 1E | 0A 0A 73 75 72 76 69 76 61 6C 2D 32 | 12 10 70 6C 61 79 2E 65 78 61 6D 70 6C 65 2E 6E 65 74",
		},
		"redirect without a name": {AppendRedirect(nil, "", "a"), "00 00 00 0B | D0 05 1D | EA 01 05 | 0A 00 | 12 01 61"},
		"disconnect":              {AppendDisconnect(nil, "Restarting soon"), "00 00 00 16 | D0 05 09 | 42 11 | 0A 0F 52 65 73 74 61 72 74 69 6E 67 20 73 6F 6F 6E"},
		"query answer": {
			AppendQueryAnswer(nil, Answer{Name: "My Net", Players: 3, Max: 64, Version: "1.22.6"}),
			"00 00 00 1A | D0 05 1C | E2 01 14 | 0A 06 4D 79 20 4E 65 74 18 03 20 40 3A 06 31 2E 32 32 2E 36",
		},
		"empty query answer": {AppendQueryAnswer(nil, Answer{}), "00 00 00 06 | D0 05 1C | E2 01 00"},
		"token query":        {AppendLoginTokenQuery(nil), "00 00 00 03 | 8A 02 00"},
		"server query":       {AppendServerQuery(nil), "00 00 00 02 | 08 0F"},
		"identification": {
			AppendIdentification(nil, "alice", "uid-123"),
			"00 00 00 12 | 12 10 | 12 05 61 6C 69 63 65 | 32 07 75 69 64 2D 31 32 33",
		},
	} {
		if want := unhex(t, row.want); !bytes.Equal(row.got, want) {
			t.Errorf("%s:\n% x, want\n% x", what, row.got, want)
		}
	}
}

// TestParseClient: each packet in each of the forms in which clients write it.
func TestParseClient(t *testing.T) {
	for what, row := range map[string]struct {
		frame string
		want  Client
		fails bool
	}{
		"token query, body":         {"00000003 8A0200", Client{Kind: LoginTokenQuery}, false},
		"token query, id":           {"00000002 0821", Client{Kind: LoginTokenQuery}, false},
		"token query, both":         {"00000005 08218A0200", Client{Kind: LoginTokenQuery}, false},
		"query, id":                 {"00000002 080F", Client{Kind: ServerQuery}, false},
		"query, body":               {"00000002 5200", Client{Kind: ServerQuery}, false},
		"query, both":               {"00000004 080F5200", Client{Kind: ServerQuery}, false},
		"identification":            {"00000012 12101205616C6963653207 7569642D313233", Client{Identification, "alice", "uid-123"}, false},
		"identification with an id": {"00000014 080112101205616C69636532077569642D313233", Client{Identification, "alice", "uid-123"}, false},
		"identification, id behind": {"00000014 12101205616C69636532077569642D3132330801", Client{Identification, "alice", "uid-123"}, false},
		"with fields nobody knows":  {"00000018 1216 0A0178 1205616C6963653207 7569642D313233 3801 40 01", Client{}, true}, // its length is wrong
		"more fields":               {"00000017 1215 0A0178 1205616C6963653207 7569642D313233 3801", Client{Identification, "alice", "uid-123"}, false},
		"without a uid":             {"00000009 1207 1205616C696365", Client{}, true},
		"identification by id only": {"00000002 0801", Client{}, false}, // it says nothing: like any other packet
		"chat":                      {"00000008 22060A0268691007", Client{}, false},
		"playing":                   {"00000003 E20100", Client{}, false},
		"empty":                     {"00000000", Client{}, false},
		"an unknown fixed field":    {"0000000B F9010102030405060708 00", Client{}, true},
		"a group":                   {"00000002 0B0C", Client{}, true},
		"a field that is cut":       {"00000003 8A0205", Client{}, true},
	} {
		var f Frames
		f.Add(unhex(t, row.frame))
		frame, ok, err := f.Next(MaxFirst)
		if err != nil {
			t.Fatal(what, err)
		}
		if !ok {
			if !row.fails {
				t.Errorf("%s: no whole frame", what)
			}
			continue
		}
		if got, err := ParseClient(frame.Payload()); got != row.want || (err != nil) != row.fails {
			t.Errorf("%s: %+v %v, want %+v", what, got, err, row.want)
		}
	}
}

// TestServerPackets: what the proxy watches a server for, and what its clients and its own questions read.
func TestServerPackets(t *testing.T) {
	for what, row := range map[string]struct {
		payload string
		want    Kind
	}{
		"identification, body": {"0A020801", ServerIdentification},
		"identification, id":   {"D00501", ServerIdentification},
		"identification, both": {"D005010A00", ServerIdentification},
		"cut inside its body":  {"0A8001010203", ServerIdentification},
		"disconnect":           {"D0050942020A00", Disconnect},
		"disconnect, body":     {"42020A00", Disconnect},
		"ready":                {"D00549", Other},
		"chat":                 {"3A00", Other},
		"token answer":         {"EA0400", Other},
		"nothing":              {"", Other},
		"garbage":              {"FFFFFFFFFFFFFF", Other},
	} {
		if got := ServerKind(unhex(t, row.payload)); got != row.want {
			t.Errorf("%s: %s, want %s", what, got, row.want)
		}
	}
	a := Answer{Name: "n", MOTD: "m", Players: 3, Max: 64, Mode: "survival", Password: true, Version: "1.22.6"}
	for _, row := range []struct {
		frame []byte
		want  Server
	}{
		{AppendQueryAnswer(nil, a), Server{Kind: QueryAnswer, Answer: a}},
		{AppendRedirect(nil, "b", "host:1"), Server{Kind: Redirect, Name: "b", Host: "host:1"}},
		{AppendDisconnect(nil, "bye"), Server{Kind: Disconnect, Reason: "bye"}},
		{AppendServerIdentification(nil), Server{Kind: ServerIdentification}},
	} {
		if got, err := ParseServer(row.frame[headSize:]); got != row.want || err != nil {
			t.Errorf("%+v %v, want %+v", got, err, row.want)
		}
	}
}

// TestHostOf: the default port is not written, and is dialled.
func TestHostOf(t *testing.T) {
	for address, host := range map[string]string{"play.example.net:42420": "play.example.net", "play.example.net:42430": "play.example.net:42430", "10.0.0.1:42420": "10.0.0.1"} {
		if got := HostOf(address); got != host || AddressOf(got) != address {
			t.Errorf("%s is written %s, read %s", address, got, AddressOf(got))
		}
	}
}

// TestFrames: whole frames come out however the stream was cut; empty and compressed ones pass.
func TestFrames(t *testing.T) {
	stream := append(AppendLoginTokenQuery(nil), unhex(t, "00000000 80000002AABB")...)
	stream = AppendIdentification(stream, "alice", "uid-123")
	for size := 1; size <= len(stream); size++ {
		var f Frames
		var out []byte
		n, packed := 0, 0
		for i := 0; i < len(stream); i += size {
			f.Add(stream[i:min(i+size, len(stream))])
			for {
				frame, ok, err := f.Next(MaxFirst)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				if frame.Compressed {
					packed++
				}
				n, out = n+1, append(out, frame.Raw...)
			}
		}
		if n != 4 || packed != 1 || !bytes.Equal(out, stream) || len(f.Rest()) != 0 {
			t.Fatalf("in pieces of %d: %d frames, %d compressed, % x", size, n, packed, out)
		}
	}
}

// TestFramesTooLong: a header alone makes nobody keep room, and no marker or other protocol passes for a frame.
func TestFramesTooLong(t *testing.T) {
	for _, head := range []string{"00010001", "80010001", "7FFFFFFF", hex.EncodeToString([]byte("NMBS")), "0D0A0D0A", hex.EncodeToString([]byte("GET "))} {
		var f Frames
		f.Add(unhex(t, head))
		_, ok, err := f.Next(MaxFirst)
		if _, refused := errors.AsType[*FrameError](err); ok || !refused {
			t.Errorf("%s: %v %v", head, ok, err)
		}
		if !bytes.Equal(f.Rest(), unhex(t, head)) {
			t.Errorf("%s is lost", head)
		}
	}
}

// TestWalker: boundaries are found wherever the stream is cut, and each frame shows how it begins.
func TestWalker(t *testing.T) {
	long := append(binary.BigEndian.AppendUint32(nil, 100), append([]byte{0x0A, 98}, make([]byte, 98)...)...)
	stream := append(AppendServerIdentification(nil), long...)
	stream = append(stream, unhex(t, "00000000 80000002AABB")...)
	stream = AppendDisconnect(stream, "bye")
	ends := map[int]bool{0: true, 6: true, 110: true, 114: true, 120: true, len(stream): true}
	for size := 1; size <= len(stream); size++ {
		kinds, packed := []Kind{}, 0
		w := Walker{Begins: func(first []byte, c bool) {
			if kinds = append(kinds, ServerKind(first)); c {
				packed++
			}
		}}
		for i := 0; i < len(stream); i += size {
			end := min(i+size, len(stream))
			last, err := w.Walk(stream[i:end])
			if err != nil {
				t.Fatal(err)
			}
			if want := lastIn(ends, i, end); last != want || w.AtBoundary() != ends[end] {
				t.Fatalf("bytes %d to %d: boundary at %d, want %d; stands at one: %t", i, end, last, want, w.AtBoundary())
			}
		}
		if len(kinds) != 4 || kinds[0] != ServerIdentification || kinds[1] != ServerIdentification || kinds[3] != Disconnect || packed != 1 {
			t.Fatalf("in pieces of %d: %v, %d compressed", size, kinds, packed)
		}
	}
	var w Walker
	if _, err := w.Walk([]byte("NMBS")); err == nil {
		t.Error("a marker passes for a frame")
	}
}

func lastIn(ends map[int]bool, from, to int) int {
	for i := to; i > from; i-- {
		if ends[i] {
			return i - from
		}
	}
	return -1
}

func FuzzClient(f *testing.F) {
	f.Add(AppendIdentification(nil, "alice", "uid-123"), 3)
	f.Add(AppendLoginTokenQuery(nil), 1)
	f.Add([]byte("NMBS\x01\x10"), 2)
	f.Fuzz(func(t *testing.T, in []byte, piece int) {
		var frames Frames
		var w Walker
		var out []byte
		var failed, walkFailed error
		for rest := in; len(rest) > 0 && failed == nil; {
			n := min(max(piece, 1), len(rest))
			frames.Add(rest[:n])
			if walkFailed == nil {
				_, walkFailed = w.Walk(rest[:n])
			}
			for rest = rest[n:]; ; {
				frame, ok, err := frames.Next(MaxFirst)
				if failed = err; !ok {
					break
				}
				out = append(out, frame.Raw...)
				if c, err := ParseClient(frame.Payload()); err == nil && c.Kind == Identification && c.UID == "" {
					t.Fatal("an identification of nobody")
				}
				_, _ = ParseServer(frame.Payload())
			}
		}
		if out = append(out, frames.Rest()...); failed == nil && !bytes.Equal(out, in) || !bytes.HasPrefix(in, out) {
			t.Fatalf("% x became % x", in, out)
		}
	})
}

func BenchmarkFirstFrame(b *testing.B) {
	in := AppendIdentification(nil, "alice", "uid-123")
	for b.Loop() {
		var f Frames
		f.Add(in)
		frame, _, _ := f.Next(MaxFirst)
		if c, err := ParseClient(frame.Payload()); err != nil || c.Kind != Identification {
			b.Fatal(err)
		}
	}
}
