package edge

import (
	"encoding/hex"
	"testing"
)

func TestCleanHost(t *testing.T) {
	for sent, want := range map[string]string{
		"play.example.net":                            "play.example.net",
		"Play.Example.NET.":                           "play.example.net",
		"play.example.net..":                          "play.example.net",
		"play.example.net\x00FML\x00":                 "play.example.net",
		"play.example.net\x00FML2\x00":                "play.example.net",
		"play.example.net.\x00FML3\x00":               "play.example.net",
		"play.example.net\x00FORGE":                   "play.example.net",
		"play.example.net///203.0.113.9:5///17///sig": "play.example.net",
		"play.example.net.///203.0.113.9:5///17\x00x": "play.example.net",
		"127.0.0.1": "127.0.0.1",
		"":          "",
		"...":       "",
	} {
		if got := CleanHost(sent); got != want {
			t.Errorf("CleanHost(%q) = %q, want %q", sent, got, want)
		}
	}
}

const token = "r-0198c7d2a4b37e6f8a1b2c3d4e5f6071-2"

func TestTokenLabel(t *testing.T) {
	for _, c := range []struct{ host, domain, want string }{
		{token + ".play.example.net", "play.example.net", token},
		{token + ".play.example.net", "", token},
		{token + ".localhost", "", token},
		{token + ".other.net", "play.example.net", ""},
		{token + ".x.play.example.net", "play.example.net", ""},
		{token, "", ""},
		{"play.example.net", "play.example.net", ""},
		{"r-0198c7d2a4b37e6f8a1b2c3d4e5f607-2.play.example.net", "", ""},
		{"r-0198c7d2a4b37e6f8a1b2c3d4e5f607g-2.play.example.net", "", ""},
		{"r-0198c7d2a4b37e6f8a1b2c3d4e5f6071.play.example.net", "", ""},
		{"r-0198c7d2a4b37e6f8a1b2c3d4e5f6071-.play.example.net", "", ""},
		{"r-0198c7d2a4b37e6f8a1b2c3d4e5f6071-0.play.example.net", "", ""},
		{"r-0198c7d2a4b37e6f8a1b2c3d4e5f6071-02.play.example.net", "", ""},
		{"r-0198c7d2a4b37e6f8a1b2c3d4e5f6071-1x.play.example.net", "", ""},
		{"0198c7d2a4b37e6f8a1b2c3d4e5f6071-1.play.example.net", "", ""},
	} {
		if got := TokenLabel(c.host, c.domain); got != c.want {
			t.Errorf("TokenLabel(%q, %q) = %q, want %q", c.host, c.domain, got, c.want)
		}
	}
}

func TestOfflineUUID(t *testing.T) {
	if OfflineUUID("Bot0") != offlineBot0 {
		t.Errorf("Bot0 is %x", OfflineUUID("Bot0"))
	}
	if OfflineUUID("bot0") == offlineBot0 {
		t.Error("the case of the name does not count")
	}
	notch := OfflineUUID("Notch")
	if got := hex.EncodeToString(notch[:]); got != "b50ad385829d3141a2167e7d7539ba7f" {
		t.Errorf("Notch is %s", got)
	}
}

func TestPlayerOf(t *testing.T) {
	claimed := [16]byte{6: 0x47, 15: 9}
	with, without := loginStart{name: "Bot0", uuid: claimed, hasUUID: true}, loginStart{name: "Bot0"}
	if playerOf(Offline, with) != offlineBot0 || playerOf(Offline, without) != offlineBot0 {
		t.Error("an offline network must not believe the claim")
	}
	if playerOf(Online, with) != claimed || playerOf(Online, without) != [16]byte{} {
		t.Error("an online network goes by the claim alone")
	}
}
