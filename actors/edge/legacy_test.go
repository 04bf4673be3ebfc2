package edge

import (
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf16"
)

func TestClassifyLegacy(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want legacyKind
	}{
		{[]byte{0xFE}, legacyBeta},
		{[]byte{0xFE, 0x01}, legacy1_4},
		{[]byte{0xFE, 0x01, 0xFA}, legacy1_6},
		{[]byte{0xFE, 0x01, 0x00}, notLegacy}, // a handshake of 254 bytes
		{[]byte{0xFE, 0x02, 0x00}, notLegacy}, // of 382
		{[]byte{0xFE, 0x02}, notLegacy},
		{[]byte{0xFE, 0x0F, 0xFA}, notLegacy},
	} {
		if got := classifyLegacy(c.b); got != c.want {
			t.Errorf("classifyLegacy(% x) = %v, want %v", c.b, got, c.want)
		}
	}
}

func TestLegacyAnswers(t *testing.T) {
	s := Status{Description: "§aHi", Version: "1.21", Online: 3, Max: 20}
	beta := "ff0007" + "00480069" + "00a7" + "0033" + "00a7" + "00320030"
	modern := "ff0015" + "00a70031" + "0000" + "003100320037" + "0000" + "0031002e00320031" + "0000" +
		"00a7006100480069" + "0000" + "0033" + "0000" + "00320030"
	for kind, want := range map[legacyKind]string{legacyBeta: beta, legacy1_4: modern, legacy1_6: modern} {
		if got := hex.EncodeToString(appendLegacyStatus(nil, kind, s)); got != want {
			t.Errorf("kind %v:\n got %s\nwant %s", kind, got, want)
		}
	}
}

func TestLegacyAnswerBounded(t *testing.T) {
	b := appendLegacyStatus(nil, legacy1_6, Status{Description: strings.Repeat("long 😀\n", 900)})
	if units := (len(b) - 3) / 2; units != 255 || b[1] != 0 || b[2] != 255 {
		t.Fatalf("%d units, header % x", units, b[:3])
	}
}

// legacyText decodes an answer.
func legacyText(t *testing.T, b []byte) string {
	t.Helper()
	if len(b) < 3 || b[0] != 0xFF || len(b) != 3+2*(int(b[1])<<8+int(b[2])) {
		t.Fatalf("legacy answer % x", b)
	}
	var units []uint16
	for b = b[3:]; len(b) > 0; b = b[2:] {
		units = append(units, uint16(b[0])<<8|uint16(b[1]))
	}
	return string(utf16.Decode(units))
}
