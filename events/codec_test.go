package events

import (
	"bytes"
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"testing"
)

// released is {n: 1, reason: "LOST_RACE"} in its only canonical form.
const released = "82" + "a16e" + "01" + "a6726561736f6e" + "a94c4f53545f52414345"

func TestStrictDecode(t *testing.T) {
	const n, reason = "a16e" + "01", "a6726561736f6e" + "a94c4f53545f52414345"
	extra := "a56c61746572" // "later"
	cases := []struct {
		name, body string
		lenient    string // what Unmarshal says; empty: it takes the body
		exact      string // what UnmarshalExact says; empty: it takes the body
	}{
		{"canonical", released, "", ""},
		{"empty", "", "ends in the middle", "ends in the middle"},
		{"nil", "c0", "want a map", "want a map"},
		{"a list", "9101", "want a map", "want a map"},
		{"text behind", released + "c0", "behind the body", "behind the body"},
		{"cut", released[:len(released)-2], "ends in the middle", "ends in the middle"},
		{"field missing", "81" + n, `"reason" is missing`, `"reason" is missing`},
		{"field twice", "83" + n + n + reason, `"n" stands twice`, `"n" stands twice`},
		{"number in a longer form", "82" + "a16e" + "cc01" + reason, "", "canonical"},
		{"number as int64", "82" + "a16e" + "d30000000000000001" + reason, "", "canonical"},
		{"number out of range", "82" + "a16e" + "cfffffffffffffffff" + reason, "out of range", "out of range"},
		{"number as text", "82" + "a16e" + "a131" + reason, "not used here", "not used here"},
		{"number as float", "82" + "a16e" + "cb3ff0000000000000" + reason, "want a whole number", "want a whole number"},
		{"number nil", "82" + "a16e" + "c0" + reason, "want a whole number", "want a whole number"},
		{"text nil", "82" + n + "a6726561736f6e" + "c0", "want text", "want text"},
		{"text as bytes", "82" + n + "a6726561736f6e" + "c40141", "want text", "want text"},
		{"text in a longer form", "82" + n + "a6726561736f6e" + "d9094c4f53545f52414345", "", "canonical"},
		{"map in a longer form", "de0002" + n + reason, "", "canonical"},
		{"other order", "82" + reason + n, "", "canonical"},
		{"optional field nil", "83" + n + reason + "a664657461696c" + "c0", "", "canonical"},
		{"optional field empty", "83" + n + reason + "a664657461696c" + "a0", "", "canonical"},
		{"unknown field", "83" + n + reason + extra + "92c3a0", "", ""},
		{"unknown field of every form", "83" + n + reason + extra + "8501c7010500" + "02d40500" + "03ca00000000" + "04c40100" + "05e0", "", ""},
		{"unknown field twice", "84" + n + reason + extra + "c0" + extra + "c0", `"later" stands twice`, `"later" stands twice`},
		{"unknown field of no form", "83" + n + reason + extra + "c1", "not used", "not used"},
		{"unknown field too deep", "83" + n + reason + extra + strings.Repeat("91", 20) + "c0", "too deep", "too deep"},
		{"name that is no text", "82" + "01" + "01" + reason, "want text", "want text"},
		{"extension before the map", "c70105" + released, "want a map", "want a map"},
		{"map that claims four billion fields", "dfffffffff" + n + reason, "ends in the middle", "ends in the middle"},
		{"text that claims four gigabytes", "82" + n + "a6726561736f6e" + "dbffffffff", "ends in the middle", "ends in the middle"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			body, err := hex.DecodeString(c.body)
			if err != nil {
				t.Fatal(err)
			}
			before := bytes.Clone(body)
			wantError(t, "Unmarshal", Unmarshal(body, new(Released)), c.lenient)
			wantError(t, "UnmarshalExact", UnmarshalExact(body, new(Released)), c.exact)
			if !bytes.Equal(before, body) {
				t.Error("decoding changed the bytes")
			}
		})
	}
}

func wantError(t *testing.T, what string, err error, part string) {
	t.Helper()
	switch {
	case part == "" && err != nil:
		t.Errorf("%s: %v, want none", what, err)
	case part != "" && err == nil:
		t.Errorf("%s took it, want an error with %q", what, part)
	case part != "" && !strings.Contains(err.Error(), part):
		t.Errorf("%s: %v, want %q in it", what, err, part)
	}
}

// What holds for a body holds for the structs inside it.
func TestStrictDecodeInside(t *testing.T) {
	good := must(Marshal(Completed{Attempt: 1, At: Position{World: "w", X: 1}}))
	replace := func(old, with string) []byte { return bytes.Replace(good, []byte(old), []byte(with), 1) }
	one := "\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00"
	cases := []struct {
		name string
		body []byte
		want string
	}{
		{"nil for a struct", append(bytes.Clone(good[:len("\x82\xa1n\x01\xa2at")]), 0xc0), "want a map"},
		{"missing inside", replace("\x86\xa5world\xa1w", "\x85"), `"world" is missing`},
		{"twice inside", replace("\x86\xa5world\xa1w", "\x87\xa5world\xa1w\xa5world\xa1w"), `"world" stands twice`},
		{"not a number", replace(one, "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01"), "is no number"},
		{"infinite", replace(one, "\xca\x7f\x80\x00\x00"), "is no number"},
		{"whole number for a float", replace(one, "\x01"), ""},
		{"short float", replace(one, "\xca\x3f\x80\x00\x00"), ""},
		{"unknown inside", replace("\x86\xa5world", "\x87\xa3new\x01\xa5world"), ""},
	}
	for _, c := range cases {
		var f Completed
		err := Unmarshal(c.body, &f)
		wantError(t, c.name, err, c.want)
		if err == nil && f.At.X != 1 {
			t.Errorf("%s: x = %v, want 1", c.name, f.At.X)
		}
	}
}

func TestStrictIDs(t *testing.T) {
	for name, body := range map[string]string{
		"text":     "81a26279" + "d92430313933613166302d356330302d376162632d386465662d303132333435363738396162",
		"15 bytes": "81a26279" + "c40f" + strings.Repeat("00", 15),
		"17 bytes": "81a26279" + "c411" + strings.Repeat("00", 17),
		"nil":      "81a26279" + "c0",
	} {
		if err := Unmarshal(must(hex.DecodeString(body)), new(Superseded)); err == nil {
			t.Errorf("an id as %s: taken", name)
		}
	}
	if err := Unmarshal(must(hex.DecodeString("81a26279c410"+strings.Repeat("00", 16))), new(Superseded)); err != nil {
		t.Errorf("an id of 16 bytes: %v", err)
	}
}

// A newer writer's optional field is tolerated and stays in the record's bytes.
func TestUnknownFieldIsCarried(t *testing.T) {
	keys := corpusKeyring()
	m := samples()[0].seal(t, keys)
	grown := append([]byte{m.Body[0] + 1}, m.Body[1:]...)
	grown = append(grown, "\xa7newness\x93\x01\xa1x\xc3"...)
	m.Body = grown
	m.Header[HeaderSig] = keys.Sign(m.Bucket.Subject(m.Key), m.Header, m.Body)
	r := record(m, 7)
	e, refusal := Open(keys, r)
	if refusal != nil {
		t.Fatal(refusal)
	}
	if !reflect.DeepEqual(e.Fact, samples()[0].fact) {
		t.Errorf("got %+v", e.Fact)
	}
	if !bytes.Equal(r.Body, grown) {
		t.Error("the record lost the field")
	}
}

func TestMarshalRefuses(t *testing.T) {
	for name, v := range map[string]any{
		"too large":    &Failed{Detail: strings.Repeat("x", MaxBody)},
		"not a number": &Completed{At: Position{X: math.NaN()}},
		"infinite":     &BackendBeat{MSPT: new(math.Inf(1))},
		"no struct":    map[string]string{"a": "b"},
	} {
		if raw, err := Marshal(v); err == nil {
			t.Errorf("%s: written as %x", name, raw)
		}
	}
	if err := Unmarshal(make([]byte, MaxBody+1), new(Released)); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("oversize body: %v", err)
	}
}

// Integers stand in their shortest form at every border, and come back as they were.
func TestIntegersAreShort(t *testing.T) {
	for value, form := range map[int64]string{
		0: "00", 127: "7f", 128: "cc80", 255: "ccff", 256: "cd0100", 65535: "cdffff", 65536: "ce00010000",
		math.MaxUint32: "ceffffffff", math.MaxUint32 + 1: "cf0000000100000000", math.MaxInt64: "cf7fffffffffffffff",
		-1: "ff", -32: "e0", -33: "d0df", -128: "d080", -129: "d1ff7f", math.MinInt64: "d38000000000000000",
	} {
		raw := must(Marshal(ArrivedAnswer{WaitMs: value}))
		if want := must(hex.DecodeString(form)); !bytes.HasSuffix(raw, append([]byte("\xa4wait"), want...)) {
			t.Errorf("%d is written as %x, want %s at the end", value, raw, form)
		}
		var back ArrivedAnswer
		if err := UnmarshalExact(raw, &back); err != nil || back.WaitMs != value {
			t.Errorf("%d came back as %d, %v", value, back.WaitMs, err)
		}
	}
	raw := must(Marshal(StateAnswer{Claim: math.MaxUint64}))
	var back StateAnswer
	if err := UnmarshalExact(raw, &back); err != nil || back.Claim != math.MaxUint64 {
		t.Errorf("the largest sequence came back as %d, %v", back.Claim, err)
	}
	negative := bytes.Replace(must(Marshal(StateAnswer{})), []byte("\xa5claim\x00"), []byte("\xa5claim\xff"), 1)
	wantError(t, "a negative sequence", Unmarshal(negative, new(StateAnswer)), "out of range")
}

// A list that is nil and one that is empty are both written, and both canonical.
func TestEmptyLists(t *testing.T) {
	for _, held := range [][]Token{nil, {}} {
		raw := must(Marshal(ArrivedAsk{Held: held}))
		var back ArrivedAsk
		if err := UnmarshalExact(raw, &back); err != nil || len(back.Held) != 0 {
			t.Errorf("%x: %v, %v", raw, back.Held, err)
		}
	}
}
