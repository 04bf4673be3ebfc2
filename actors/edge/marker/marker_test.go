package marker_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/landfall/landfall/actors/edge/marker"
)

// counting is the id 00 01 … 0F.
var counting = marker.ID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// golden is the marker of counting, as clients in the field send it.
const golden = "4e4d42530110000102030405060708090a0b0c0d0e0f"

func goldenBytes(t testing.TB) []byte {
	t.Helper()
	b, err := hex.DecodeString(golden)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMarkerBytes(t *testing.T) {
	got := marker.Append(nil, counting)
	if hex.EncodeToString(got) != golden || len(got) != marker.Size || marker.Size != 22 {
		t.Errorf("marker is %x, %d bytes", got, len(got))
	}
	if id, found := marker.Look(got); found != marker.Present || id != counting {
		t.Errorf("read back: %v %x", found, id[:])
	}
}

// game is what a client sends after the marker.
var game = []byte{0, 0, 0, 3, 0x8a, 0x02, 0}

func TestLook(t *testing.T) {
	whole := goldenBytes(t)
	with := func(at int, b byte) []byte {
		out := bytes.Clone(whole)
		out[at] = b
		return out
	}
	for name, c := range map[string]struct {
		in   []byte
		want marker.Found
	}{
		"nothing":               {nil, marker.Partial},
		"a marker":              {whole, marker.Present},
		"a marker and more":     {append(bytes.Clone(whole), game...), marker.Present},
		"a game's first bytes":  {game, marker.Absent},
		"first magic byte":      {with(0, 'n'), marker.Absent},
		"second magic byte":     {with(1, 'm'), marker.Absent},
		"third magic byte":      {with(2, 'b'), marker.Absent},
		"fourth magic byte":     {with(3, 's'), marker.Absent},
		"only the fourth":       {[]byte("NMBs"), marker.Absent},
		"version 0":             {with(4, 0), marker.Unknown},
		"version 2":             {with(4, 2), marker.Unknown},
		"version 2, cut":        {with(4, 2)[:5], marker.Unknown},
		"length 15":             {with(5, 15), marker.Unknown},
		"length 17":             {with(5, 17), marker.Unknown},
		"length 255":            {with(5, 255), marker.Unknown},
		"one byte":              {whole[:1], marker.Partial},
		"magic alone":           {whole[:4], marker.Partial},
		"all but the last byte": {whole[:21], marker.Partial},
	} {
		if id, got := marker.Look(c.in); got != c.want || got != marker.Present && id != (marker.ID{}) {
			t.Errorf("%s: %v %v, want %v", name, got, id, c.want)
		}
	}
}

// segments delivers one segment a read, however much room the reader has.
type segments [][]byte

func (s *segments) Read(p []byte) (int, error) {
	if len(*s) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*s)[0])
	if (*s)[0] = (*s)[0][n:]; len((*s)[0]) == 0 {
		*s = (*s)[1:]
	}
	return n, nil
}

// TestMarkerSplitAtAnySegmentBoundary: wherever a marker and the bytes behind it are cut, in two
// pieces, in three, or byte by byte, it is taken off and the rest is untouched.
func TestMarkerSplitAtAnySegmentBoundary(t *testing.T) {
	stream := append(goldenBytes(t), game...)
	check := func(r io.Reader) {
		t.Helper()
		b := bufio.NewReaderSize(r, 64)
		id, found, err := marker.Take(b)
		rest, restErr := io.ReadAll(b)
		if id != counting || found != marker.Present || err != nil || restErr != nil || !bytes.Equal(rest, game) {
			t.Fatalf("%v %v %v, then % x (%v)", id, found, err, rest, restErr)
		}
	}
	for i := 1; i < len(stream); i++ {
		for j := i; j <= len(stream); j++ {
			check(&segments{stream[:i], stream[i:j], stream[j:]})
		}
	}
	check(iotest.OneByteReader(bytes.NewReader(stream)))
	check(bytes.NewReader(stream))
}

// TestFirstBytesWithoutMarkerAreUntouched: whatever is no marker stays in the reader, byte by byte.
func TestFirstBytesWithoutMarkerAreUntouched(t *testing.T) {
	whole := goldenBytes(t)
	torn := errors.New("the client paused")
	for name, c := range map[string]struct {
		in   []byte
		want marker.Found
	}{
		"a game's first bytes": {game, marker.Absent},
		"one byte of a game":   {game[:1], marker.Absent},
		"unknown version":      {append([]byte("NMBS\x02\x10"), whole[6:]...), marker.Unknown},
		"unknown length":       {append([]byte("NMBS\x01\x11"), whole[6:]...), marker.Unknown},
		"almost the magic":     {[]byte("NMBX and more"), marker.Absent},
		"nothing":              {nil, marker.Partial},
		"torn in the magic":    {whole[:3], marker.Partial},
		"torn in the id":       {whole[:21], marker.Partial},
	} {
		r := bufio.NewReader(io.MultiReader(iotest.OneByteReader(bytes.NewReader(c.in)), iotest.ErrReader(torn)))
		_, found, err := marker.Take(r)
		if found != c.want || (err != nil) != (c.want == marker.Partial) || err != nil && !errors.Is(err, torn) {
			t.Errorf("%s: %v %v, want %v", name, found, err, c.want)
		}
		if rest, _ := r.Peek(r.Buffered()); !bytes.Equal(rest, c.in[:len(rest)]) || c.want == marker.Partial && len(rest) != len(c.in) {
			t.Errorf("%s: left % x of % x", name, rest, c.in)
		}
	}
}

// TestIDsAreNotShown: what formats an id shows only its head.
func TestIDsAreNotShown(t *testing.T) {
	if s := counting.String(); s != "00010203" || s != counting.Short() {
		t.Errorf("shown as %q", s)
	}
	for _, bad := range []string{"", "00", strings.ToUpper(counting.Hex()), counting.Hex() + "0", counting.Hex()[1:] + "g"} {
		if _, err := marker.ParseID(bad); err == nil {
			t.Errorf("%q is taken for an id", bad)
		} else if len(bad) > 8 && strings.Contains(err.Error(), bad[8:]) {
			t.Errorf("the error shows the id: %v", err)
		}
	}
	if id, err := marker.ParseID(counting.Hex()); err != nil || id != counting {
		t.Errorf("read back: %v %v", id, err)
	}
}

// FuzzTake: nothing that arrives makes it fail, and no byte is lost or invented.
func FuzzTake(f *testing.F) {
	f.Add(goldenBytes(f), 1)
	f.Add(game, 2)
	f.Add([]byte("NMBS\x02\x10"), 3)
	f.Fuzz(func(t *testing.T, in []byte, piece int) {
		var s segments
		for rest := in; len(rest) > 0; {
			n := min(max(piece, 1), len(rest))
			s, rest = append(s, rest[:n]), rest[n:]
		}
		r := bufio.NewReaderSize(&s, 32)
		id, found, err := marker.Take(r)
		rest, restErr := io.ReadAll(r)
		if restErr != nil {
			t.Fatal(restErr)
		}
		if found == marker.Present {
			rest = append(marker.Append(nil, id), rest...)
		}
		if !bytes.Equal(rest, in) || (err != nil) != (found == marker.Partial) {
			t.Fatalf("% x became % x (%v, %v)", in, rest, found, err)
		}
	})
}

func BenchmarkLook(b *testing.B) {
	first := append(marker.Append(nil, counting), game...)
	for b.Loop() {
		if _, found := marker.Look(first); found != marker.Present {
			b.Fatal(found)
		}
	}
}
