package events

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
)

func TestOfflinePlayer(t *testing.T) {
	for name, want := range map[string]string{
		"Notch": "b50ad385-829d-3141-a216-7e7d7539ba7f",
		"Bob":   "faa5dca3-c3d4-354b-ae1b-dde9e5a14b3b",
		"Zoë":   "f6730b28-736f-34a8-93cb-c09052c1dd8b",
		"jeb_":  "a762f560-4fce-3236-812a-b80efff0b62b",
	} {
		if got := OfflinePlayer(name).String(); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"Bob", "bob", "Zoë", strings.Repeat("x", 16)} {
		id := OfflinePlayer(name)
		if id[6]>>4 != 3 || id[8]>>6 != 2 {
			t.Errorf("%q: %s is no UUID of version 3", name, id)
		}
	}
	if OfflinePlayer("Bob") == OfflinePlayer("bob") {
		t.Error("the name is case-sensitive")
	}
}

func TestNativePlayer(t *testing.T) {
	a := NativePlayer("vintagestory", "abc")
	if a[6]>>4 != 5 || a == NativePlayer("vintagestory", "abd") || a == NativePlayer("vintagestor", "yabc") || a != NativePlayer("vintagestory", "abc") {
		t.Errorf("%s", a)
	}
}

func TestParseID(t *testing.T) {
	want := must(ParseID[PlayerID](samplePlayer))
	for _, s := range []string{samplePlayer, strings.ToUpper(samplePlayer), strings.ReplaceAll(samplePlayer, "-", "")} {
		if got, err := ParseID[PlayerID](s); err != nil || got != want {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{
		"", "x", samplePlayer + "0", samplePlayer[:35], "{" + samplePlayer + "}", "urn:uuid:" + samplePlayer,
		strings.Replace(samplePlayer, "-", "0", 1), strings.Replace(samplePlayer, "0", "g", 1),
	} {
		if got, err := ParseID[PlayerID](s); err == nil {
			t.Errorf("%q is taken for %s", s, got)
		}
	}
	if want.Hex() != strings.ReplaceAll(samplePlayer, "-", "") || !strings.HasSuffix(want.Hex(), want.Short()) || len(want.Short()) != 8 {
		t.Errorf("hex %s, short %s", want.Hex(), want.Short())
	}
}

func TestIDText(t *testing.T) {
	type both struct {
		Player PlayerID
		Token  Token
	}
	token := Token{Transfer: must(ParseID[TransferID](sampleTransfer)), Attempt: 12}
	for _, c := range []struct {
		v    both
		text string
	}{
		{both{must(ParseID[PlayerID](samplePlayer)), token}, `{"Player":"` + samplePlayer + `","Token":"` + sampleTransfer + `-12"}`},
		{both{}, `{"Player":"","Token":""}`},
	} {
		raw := must(json.Marshal(c.v))
		var back both
		if err := json.Unmarshal(raw, &back); err != nil || string(raw) != c.text || back != c.v {
			t.Errorf("%s, want %s; came back as %+v, %v", raw, c.text, back, err)
		}
	}
	var p PlayerID
	if err := p.UnmarshalText([]byte("Notch")); err == nil {
		t.Error("a name is taken for an id")
	}
	for _, bad := range []string{"x", sampleTransfer, sampleTransfer + "-0", sampleTransfer + "-65"} {
		if err := new(Token).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a token", bad)
		}
	}
}

func TestToken(t *testing.T) {
	transfer := must(ParseID[TransferID](sampleTransfer))
	token := Token{Transfer: transfer, Attempt: 7}
	if token.String() != sampleTransfer+"-7" || token.Label() != "r-0193a1f05c007abc8def0123456789ab-7" || len(token.Label()) > 63 {
		t.Errorf("%s, %s", token, token.Label())
	}
	for _, s := range []string{token.String(), token.Label(), strings.ToUpper(token.String())} {
		if got, err := ParseToken(s); err != nil || got != token {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{
		"", "-", "-7", "r-7", sampleTransfer, sampleTransfer + "-", sampleTransfer + "-07", sampleTransfer + "-+7", sampleTransfer + "--7",
		sampleTransfer + "-0", sampleTransfer + "-65", sampleTransfer + "-7 ", "R-" + transfer.Hex() + "-7", sampleTransfer + "-99999999999999999999",
	} {
		if got, err := ParseToken(s); err == nil {
			t.Errorf("%q is taken for %s", s, got)
		}
	}
	if !(Token{}).IsZero() || token.IsZero() {
		t.Error("IsZero")
	}
}

func TestHostID(t *testing.T) {
	for _, s := range []string{"a", "survival-1", "A_b-9", strings.Repeat("x", 63)} {
		if got, err := ParseHostID(s); err != nil || string(got) != s {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{"", "a.b", "a b", "*", ">", "a/b", "ä", "a\n", strings.Repeat("x", 64)} {
		if _, err := ParseHostID(s); err == nil {
			t.Errorf("%q is taken for a host id", s)
		}
	}
}

// One subject is one key: other spellings of the same ids would stand behind another guard.
func TestKeys(t *testing.T) {
	key := samplePlayer + "." + sampleTransfer
	p, x, err := ParseTransferKey(key)
	if err != nil || TransferKey(p, x) != key {
		t.Fatalf("%s: %v", key, err)
	}
	for _, bad := range []string{
		"", ".", samplePlayer, samplePlayer + ".", "." + sampleTransfer, key + ".", key + "x", strings.ToUpper(key),
		strings.ReplaceAll(key, "-", ""), sampleTransfer + "." + samplePlayer + "." + sampleTransfer,
	} {
		if _, _, err := ParseTransferKey(bad); err == nil {
			t.Errorf("%q is taken for a transfer key", bad)
		}
	}
	if got, err := ParsePlayerKey(samplePlayer); err != nil || PlayerKey(got) != samplePlayer {
		t.Errorf("%s: %v", samplePlayer, err)
	}
	for _, bad := range []string{"", "x", strings.ToUpper(samplePlayer), strings.ReplaceAll(samplePlayer, "-", "")} {
		if _, err := ParsePlayerKey(bad); err == nil {
			t.Errorf("%q is taken for a session key", bad)
		}
	}
	bucket, k, err := ParseSubject(Transfers.Subject(key))
	if err != nil || bucket != Transfers || k != key {
		t.Errorf("subject gave %s, %s, %v", bucket, k, err)
	}
	for _, bad := range []string{"", "$KV.", "$KV.transfers", "$KV.transfers.", "KV.transfers.x"} {
		if _, _, err := ParseSubject(bad); err == nil {
			t.Errorf("%q is taken for the subject of a key", bad)
		}
	}
}

func TestIDsAreBytesOnTheWire(t *testing.T) {
	raw := must(Marshal(StateAsk{Player: must(ParseID[PlayerID](samplePlayer))}))
	want := "81" + "a6706c61796572" + "c410" + strings.ReplaceAll(samplePlayer, "-", "")
	if hex.EncodeToString(raw) != want {
		t.Errorf("%x, want %s", raw, want)
	}
	raw = must(Marshal(PlacedAsk{Token: Token{Transfer: must(ParseID[TransferID](sampleTransfer)), Attempt: 1}}))
	if !strings.Contains(string(raw), "\xa5token\xd9\x26"+sampleTransfer+"-1") {
		t.Errorf("%q: want the token as text", raw)
	}
}

func TestRefusalAndAppendError(t *testing.T) {
	if got := Refuse(Full, "").Error(); got != "FULL" {
		t.Error(got)
	}
	if got := Refuse(Full, "no seat").Error(); got != "FULL: no seat" {
		t.Error(got)
	}
	err := &AppendError{Reason: Conflict, Key: "k", Last: 3, Code: 10071, Err: ErrNobody}
	if err.Unwrap() != ErrNobody || !strings.Contains(err.Error(), "append k: conflict (last 3, code 10071)") { //nolint:errorlint // the very value is meant
		t.Error(err)
	}
}
