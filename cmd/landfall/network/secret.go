package network

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

const (
	minSecretBytes    = 32
	minDistinctBytes  = 10 // 32 random bytes never have so few
	secretRemedy      = "allowed: Base64 of 32 bytes or more; make one with: head -c 32 /dev/urandom | base64"
	keyIDBytes        = 4
	placeholderSearch = 256
)

// placeholders are what people leave in a sample file, in lower case.
var placeholders = []string{"changeme", "change-me", "change_me", "placeholder", "replaceme", "replace-me", "yoursecret", "your-secret", "your_secret", "secretsecret", "password"}

// Secret is the network's shared secret and the id of its key, which signatures name. It comes from the
// variable security.secretEnv (env is os.Getenv) or else from the file security.secretFile.
// No error and no log ever holds the secret or a part of it.
func (n *Network) Secret(env func(string) string) (secret []byte, keyID string, err error) {
	name := n.Security.SecretEnv
	if text := env(name); text != "" {
		return parseSecret("$"+name, text)
	}
	if n.Security.SecretFile == "" {
		return nil, "", secretError(CodeSecretMissing, "$"+name, "is not set, and security.secretFile is empty")
	}
	path := n.File(n.Security.SecretFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, "", secretError(CodeSecretMissing, path, "cannot be read, and $"+name+" is not set")
	}
	return parseSecret(path, string(text))
}

// PreviousSecret is the secret before the current one, still accepted in signatures while a rotation runs;
// nil without an error when the file names none.
func (n *Network) PreviousSecret(env func(string) string) (secret []byte, keyID string, err error) {
	name := n.Security.PreviousSecretEnv
	if name == "" {
		return nil, "", nil
	}
	text := env(name)
	if text == "" {
		return nil, "", secretError(CodeSecretMissing, "$"+name, "is not set, but security.previousSecretEnv names it")
	}
	return parseSecret("$"+name, text)
}

func parseSecret(source, text string) ([]byte, string, error) {
	text = strings.TrimSpace(text)
	if isPlaceholder(text) {
		return nil, "", secretError(CodeSecretSample, source, "is a placeholder, which everybody knows")
	}
	secret, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		return nil, "", secretError(CodeSecretBad, source, "is not Base64")
	case len(secret) < minSecretBytes:
		return nil, "", secretError(CodeSecretShort, source, fmt.Sprintf("has only %d bytes", len(secret)))
	case isPlaceholder(string(secret)) || distinct(secret) < minDistinctBytes:
		return nil, "", secretError(CodeSecretSample, source, "is a placeholder: it is a word or repeats itself")
	}
	return secret, KeyID(secret), nil
}

// KeyID names a secret without telling anything about it: the first 8 hex digits of its SHA-256.
func KeyID(secret []byte) string {
	sum := sha256.Sum256(secret)
	return hex.EncodeToString(sum[:keyIDBytes])
}

func isPlaceholder(text string) bool {
	text = strings.ToLower(text[:min(len(text), placeholderSearch)])
	for _, word := range placeholders {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// distinct counts the different bytes in the first 32.
func distinct(secret []byte) int {
	count := 0
	for b := range 256 {
		if bytes.IndexByte(secret[:minSecretBytes], byte(b)) >= 0 {
			count++
		}
	}
	return count
}

func secretError(code, source, problem string) error {
	return &Error{Code: code, Key: "secret " + source, Msg: problem + "; " + secretRemedy}
}
