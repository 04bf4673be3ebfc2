package edge

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestVarInt(t *testing.T) {
	for _, c := range []struct {
		v int32
		b []byte
	}{
		{0, []byte{0}}, {127, []byte{0x7f}}, {128, []byte{0x80, 1}}, {254, []byte{0xfe, 1}}, {382, []byte{0xfe, 2}},
		{25565, []byte{0xdd, 0xc7, 1}}, {2147483647, []byte{0xff, 0xff, 0xff, 0xff, 7}}, {-1, []byte{0xff, 0xff, 0xff, 0xff, 0xf}},
	} {
		if got := appendVarInt(nil, c.v); !bytes.Equal(got, c.b) {
			t.Errorf("appendVarInt(%d) = % x, want % x", c.v, got, c.b)
		}
		if v, n := varInt(append(c.b, 9)); v != c.v || n != len(c.b) {
			t.Errorf("varInt(% x) = %d, %d", c.b, v, n)
		}
		if _, n := varInt(c.b[:len(c.b)-1]); n != 0 {
			t.Errorf("varInt of the cut % x = length %d, want 0", c.b, n)
		}
	}
	if _, n := varInt(bytes.Repeat([]byte{0x80}, 6)); n != -1 {
		t.Errorf("an endless VarInt has length %d, want -1", n)
	}
}

func TestReadFrameRefusesEarly(t *testing.T) {
	for name, b := range map[string][]byte{
		"HTTP":          []byte("GE"), // length 71: must not wait for 71 bytes
		"TLS":           {0x16, 0x03},
		"SSH":           []byte("SS"),
		"length 0":      {0},
		"length 2049":   {0x81, 0x10},
		"endless":       {0x80, 0x80, 0x80},
		"second packet": {2, 1},
	} {
		if _, err := readFrame(reader(b), 0); !errors.Is(err, errMalformed) {
			t.Errorf("%s: error %v, want malformed", name, err)
		}
	}
}

func TestReadFrameKeepsBytes(t *testing.T) {
	first := []byte{0x83, 0x00, 0, 7, 8} // a length of 3 in two bytes
	r := reader(append(bytes.Clone(first), "next"...))
	f, err := readFrame(r, 0)
	if err != nil || !bytes.Equal(f.raw, first) || f.id() != 0 || !bytes.Equal(f.payload(), []byte{7, 8}) {
		t.Fatalf("frame %+v, error %v", f, err)
	}
	if rest, _ := r.Peek(4); string(rest) != "next" {
		t.Fatalf("rest %q", rest)
	}
	if _, err := readFrame(reader(appendFrame(nil, 0, []byte(strings.Repeat("x", 2047)))), 0); err != nil {
		t.Fatalf("a frame of the longest length: %v", err)
	}
}
