package events

import (
	"strings"
	"testing"
)

func TestBearer(t *testing.T) {
	var random [40]byte
	for i := range random {
		random[i] = byte(i)
	}
	b := NewBearer(random)
	if want := "landfall_0001020304050607_CAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQlJic"; b.Text() != want {
		t.Errorf("shown as %s, want %s", b.Text(), want)
	}
	back, err := ParseBearer(b.Text())
	if err != nil || back != b || back.Hash() != b.Hash() {
		t.Errorf("came back as %+v, %v", back, err)
	}
	if strings.Contains(b.String(), "CAk") {
		t.Errorf("a log line would show %s", b)
	}
	random[39]++
	if NewBearer(random).Hash() == b.Hash() {
		t.Error("two tokens, one hash")
	}
}

func TestBearerRefuses(t *testing.T) {
	const good = "landfall_0001020304050607_CAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQlJic"
	for name, text := range map[string]string{
		"nothing":         "",
		"another's":       "ghp_0001020304050607_CAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQlJic",
		"no secret":       "landfall_0001020304050607",
		"too short":       good[:len(good)-2],
		"too long":        good + "AA",
		"id in capitals":  "landfall_000102030405060A_CAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQlJic",
		"id is no number": "landfall_zzzzzzzzzzzzzzzz_CAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQlJic",
		"blanks":          good + " ",
	} {
		if _, err := ParseBearer(text); err == nil || strings.Contains(err.Error(), "CAk") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, id := range []string{"", "x", "0001020304050607a", "000102030405060A"} {
		if _, err := ParseAPITokenID(id); err == nil {
			t.Errorf("token id %q was taken", id)
		}
	}
	if _, err := ParseScope("everything"); err == nil {
		t.Error("a scope that there is not was taken")
	}
}
