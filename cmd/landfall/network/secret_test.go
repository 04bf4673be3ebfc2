package network

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// key is n different bytes: a secret only for tests.
func key(n int) []byte {
	var b []byte
	for i := range n {
		b = append(b, byte(i*7+3))
	}
	return b
}

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func TestSecret(t *testing.T) {
	n := parse(t, small)
	secret, id, err := n.Secret(environment("RTP_NET_SECRET=" + b64(key(32)) + "\n"))
	if err != nil || !bytes.Equal(secret, key(32)) || len(id) != 8 || id != KeyID(key(32)) {
		t.Fatalf("got %d bytes, id %q, %v", len(secret), id, err)
	}
	if id != "ab5f8b5c" {
		t.Errorf("key id %q changed: every signature names it", id)
	}
}

func TestSecretFromAFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "net.secret"), []byte(b64(key(48))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := Parse(filepath.Join(dir, "network.yml"), []byte(small+"security: { secretFile: net.secret }\n"))
	if err != nil {
		t.Fatal(err)
	}
	if secret, _, err := n.Secret(environment()); err != nil || !bytes.Equal(secret, key(48)) {
		t.Errorf("from the file beside network.yml: %d bytes, %v", len(secret), err)
	}
	if secret, _, err := n.Secret(environment("RTP_NET_SECRET=" + b64(key(32)))); err != nil || !bytes.Equal(secret, key(32)) {
		t.Errorf("the variable must come first: %d bytes, %v", len(secret), err)
	}
}

func TestPreviousSecret(t *testing.T) {
	if secret, _, err := parse(t, small).PreviousSecret(environment()); secret != nil || err != nil {
		t.Errorf("none named: %v, %v", secret, err)
	}
	n := parse(t, small+"security: { previousSecretEnv: OLD_SECRET }\n")
	if secret, _, err := n.PreviousSecret(environment("OLD_SECRET=" + b64(key(32)))); err != nil || len(secret) != 32 {
		t.Errorf("named: %d bytes, %v", len(secret), err)
	}
	if _, _, err := n.PreviousSecret(environment()); err == nil {
		t.Error("named and unset: accepted")
	}
}

func TestSecretRefuses(t *testing.T) {
	for _, c := range []struct{ name, value, code, want string }{
		{"missing", "", CodeSecretMissing, "is not set, and security.secretFile is empty"},
		{"short", b64(key(31)), CodeSecretShort, "has only 31 bytes"},
		{"not base64", "this is not base64!", CodeSecretBad, "is not Base64"},
		{"hex", strings.Repeat("zz-", 20), CodeSecretBad, "is not Base64"},
		{"changeme", "changeme", CodeSecretSample, "is a placeholder, which everybody knows"},
		{"a long placeholder", "CHANGE-ME-please-before-you-start-this", CodeSecretSample, "is a placeholder, which everybody knows"},
		{"an encoded placeholder", b64([]byte(strings.Repeat("changeme", 4))), CodeSecretSample, "is a placeholder: it is a word or repeats itself"},
		{"zeros", b64(make([]byte, 32)), CodeSecretSample, "is a placeholder: it is a word or repeats itself"},
		{"one letter", strings.Repeat("A", 44), CodeSecretSample, "is a placeholder: it is a word or repeats itself"},
		{"a short cycle", b64([]byte(strings.Repeat("abcd", 8))), CodeSecretSample, "is a placeholder: it is a word or repeats itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := parse(t, small).Secret(environment("RTP_NET_SECRET=" + c.value))
			var e *Error
			want := "secret $RTP_NET_SECRET: " + c.want + "; allowed: Base64 of 32 bytes or more; make one with: head -c 32 /dev/urandom | base64"
			if !errors.As(err, &e) || e.Code != c.code || err.Error() != want {
				t.Errorf("got  %v\nwant %s %s", err, c.code, want)
			}
			if len(c.value) > 20 && strings.Contains(err.Error(), c.value) {
				t.Error("the error shows the secret")
			}
		})
	}
}
