package edge

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestCapturedOpenings(t *testing.T) {
	for _, o := range openings(t) {
		t.Run(o.version, func(t *testing.T) {
			r := reader(o.bytes)
			f, err := readFrame(r, 0)
			if err != nil {
				t.Fatal(err)
			}
			h, err := parseHandshake(f.payload())
			if err != nil || h.protocol != o.protocol || h.host != "play.example.test" || h.port != 25565 || h.intent != intentLogin {
				t.Fatalf("handshake %+v, error %v", h, err)
			}
			f, err = readFrame(r, 0)
			if err != nil || r.Buffered() != 0 {
				t.Fatalf("error %v, %d bytes left", err, r.Buffered())
			}
			l, err := parseLoginStart(f.payload(), h.protocol)
			if err != nil || l.name != "Bot0" || l.hasUUID != (o.protocol >= 760) || l.hasUUID && l.uuid != offlineBot0 {
				t.Fatalf("login start %+v, error %v", l, err)
			}
		})
	}
}

func TestHandshakeBuilderMatchesCapture(t *testing.T) {
	for _, o := range openings(t) {
		if !bytes.HasPrefix(o.bytes, hello(o.protocol, "play.example.test", intentLogin)) {
			t.Errorf("%s: the test builder writes another handshake than the client", o.version)
		}
	}
}

func TestHandshakeMalformed(t *testing.T) {
	good := hello(767, "play.example.test", intentLogin)[2:]
	for name, b := range map[string][]byte{
		"empty":           {},
		"cut in version":  {0xff},
		"cut in host":     good[:8],
		"no port":         good[:len(good)-3],
		"no intent":       good[:len(good)-1],
		"intent 0":        append(bytes.Clone(good[:len(good)-1]), 0),
		"intent 4":        append(bytes.Clone(good[:len(good)-1]), 4),
		"intent in two":   append(bytes.Clone(good[:len(good)-1]), 0x83, 0),
		"negative length": join(appendVarInt(nil, 767), appendVarInt(nil, -1), []byte("x\x63\xdd\x02")),
		"host of 256":     hello(767, strings.Repeat("h", 256), 2)[3:],
		"host no UTF-8":   hello(767, "\xff\xfe", 2)[2:],
	} {
		if _, err := parseHandshake(b); !errors.Is(err, errMalformed) {
			t.Errorf("%s: error %v, want malformed", name, err)
		}
	}
	if h, err := parseHandshake(hello(767, strings.Repeat("ü", 255), 2)[3:]); err != nil || len(h.host) != 510 {
		t.Errorf("host of 255 characters: %v", err)
	}
}

func TestRewriteIntentTouchesOneByte(t *testing.T) {
	for name, tail := range map[string][]byte{"plain": nil, "trailing bytes": {9, 9}} {
		sent := hello(snapshotProtocol, "r-x.example\x00FML3\x00", intentTransfer)
		sent = append(appendVarInt(nil, int32(len(sent)-1+len(tail))), append(sent[1:], tail...)...)
		f, err := readFrame(reader(sent), 0)
		if err != nil {
			t.Fatal(err)
		}
		h, err := parseHandshake(f.payload())
		if err != nil || h.intent != intentTransfer {
			t.Fatalf("%s: %+v, %v", name, h, err)
		}
		got := h.withIntent(f, intentLogin)
		want := bytes.Clone(sent)
		want[len(want)-1-len(tail)] = intentLogin
		if !bytes.Equal(got, want) || !bytes.Equal(f.raw, sent) {
			t.Errorf("%s: rewritten % x, want % x; kept % x", name, got, want, f.raw)
		}
	}
}

func FuzzHandshake(f *testing.F) {
	for _, o := range openings(f) {
		f.Add(o.bytes)
	}
	f.Add(hello(snapshotProtocol, "a\x00FML2\x00", intentTransfer))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{0xfe, 1, 0xfa})
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, err := readFrame(reader(b), 0)
		if err != nil {
			return
		}
		if !bytes.HasPrefix(b, fr.raw) {
			t.Fatalf("frame % x is not what arrived", fr.raw)
		}
		h, err := parseHandshake(fr.payload())
		if err != nil {
			return
		}
		if got := h.withIntent(fr, byte(h.intent)); !bytes.Equal(got, fr.raw) {
			t.Fatalf("rewriting the same intent changed % x to % x", fr.raw, got)
		}
		if clean := CleanHost(h.host); CleanHost(clean) != clean {
			t.Fatalf("cleaning %q twice differs", h.host)
		}
		TokenLabel(CleanHost(h.host), "")
	})
}
