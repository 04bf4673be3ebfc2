package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/landfall/landfall/cmd/landfall/network"
)

// initialised is a directory that `landfall init` filled, with a store on a free port.
func initialised(t *testing.T, more ...string) site {
	t.Helper()
	t.Setenv(envSecret, "")
	s := site{filepath.Join(t.TempDir(), "net")}
	args := []string{
		"init", s.dir, "--store-address", fmt.Sprintf("127.0.0.1:%d", freePort(t)), "--edge-listen", fmt.Sprintf("127.0.0.1:%d", freePort(t)),
	}
	if o := typed(t, append(args, more...)...); o.status != statusOK {
		t.Fatalf("init: status %d, %s", o.status, o.stderr)
	}
	return s
}

// contents are the files of a directory, and its sub-directories.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir+"/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestCase100FirstRunPassesItsOwnCheck: what a first run generates is accepted by the program's own
// check and serves as it stands, on an empty disk and with a home that cannot be written to.
func TestCase100FirstRunPassesItsOwnCheck(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	write(t, home, "no directory: nobody can write below it")
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	s := initialised(t)
	for _, id := range []string{"proxy-1", "survival-1", "survival-2"} {
		o := typed(t, "config", "check", filepath.Join(s.dir, defaultConfig), "--id", id)
		if o.status != statusOK || strings.Contains(o.stdout, "warning") {
			t.Errorf("check as %s: status %d, %s%s", id, o.status, o.stdout, o.stderr)
		}
	}
	proxy := s.up(t, "proxy-1", envSecret+"=")
	proxy.says(t, "msg=ready", "carrier=true")
	backend := s.up(t, "survival-1", envSecret+"=")
	backend.says(t, `msg="store connected"`, "tls://127.0.0.1")
	backend.says(t, "msg=ready")
	for _, at := range [][]string{{"--store", filepath.Join(s.dir, "landfall-data")}, {"--config", filepath.Join(s.dir, defaultConfig)}, s.overTLS(t)} {
		o := typed(t, append([]string{"state", "fleet"}, at...)...)
		if o.status != statusOK || !strings.Contains(o.stdout, "proxy-1") {
			t.Errorf("state fleet %v: status %d, %s%s", at, o.status, o.stdout, o.stderr)
		}
	}
	backend.stop(t)
	proxy.stop(t)
}

// overTLS are the flags that reach the store as another machine does.
func (s site) overTLS(t *testing.T) []string {
	t.Helper()
	n, err := network.Load(filepath.Join(s.dir, defaultConfig))
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--config", filepath.Join(s.dir, defaultConfig), "--store", n.Store.URL}
}

// TestInitKeepsWhatIsThere: run again it changes nothing, and makes what was lost.
func TestInitKeepsWhatIsThere(t *testing.T) {
	s := initialised(t)
	before := contents(t, s.dir)
	for name := range before {
		if info, err := os.Stat(filepath.Join(s.dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want 0600", name, info.Mode(), err)
		}
	}
	again := func() map[string]string {
		o := typed(t, "init", s.dir, "--name", "another", "--backends", "other")
		if o.status != statusOK {
			t.Fatalf("again: status %d, %s", o.status, o.stderr)
		}
		return contents(t, s.dir)
	}
	if after := again(); !sameFiles(before, after) {
		t.Error("the second run changed something")
	}
	for _, lost := range []string{"survival-1.rcon", "net.secret"} {
		removeFiles(t, s.dir, lost)
		after := again()
		if after[lost] == "" || after[lost] == before[lost] {
			t.Errorf("%s was not made anew", lost)
		}
		before[lost] = after[lost]
		if !sameFiles(before, after) {
			t.Errorf("making %s changed another file", lost)
		}
	}
}

func sameFiles(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, text := range a {
		if b[name] != text {
			return false
		}
	}
	return true
}

func removeFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestInitRefuses what protects nothing, and what it could only mend by overwriting.
func TestInitRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}{
		"placeholder": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "net.secret"), "changeme") }, "is a placeholder, which everybody knows"},
		"short":       {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "net.secret"), "c2hvcnQ=") }, "has only 5 bytes"},
		"bad file":    {func(t *testing.T, dir string) { write(t, filepath.Join(dir, defaultConfig), "hosts: 3\n") }, "network.yml:1: hosts"},
		"half a pair": {func(t *testing.T, dir string) { removeFiles(t, dir, "tls/store.key") }, "only one is there"},
		"no authority's key": {func(t *testing.T, dir string) {
			removeFiles(t, dir, "tls/ca.key", "tls/store.crt", "tls/store.key")
		}, "run init where the key is kept"},
		"no authority": {func(t *testing.T, dir string) {
			removeFiles(t, dir, "tls/ca.crt", "tls/store.crt", "tls/store.key")
		}, "bring it back"},
	} {
		t.Run(name, func(t *testing.T) {
			s := initialised(t)
			c.spoil(t, s.dir)
			before := contents(t, s.dir)
			if o := typed(t, "init", s.dir); o.status != statusFailed || !strings.Contains(o.stderr, c.want) {
				t.Errorf("status %d, %q; want %q", o.status, o.stderr, c.want)
			}
			if !sameFiles(before, contents(t, s.dir)) {
				t.Error("something was written all the same")
			}
		})
	}
	for _, c := range []struct{ args, want string }{
		{"--name|a b", "network.name"}, {"--store-address|nowhere", "store.url"}, {"--proxies||--backends|", "name a host"}, {"--domain|under score!", "edge.domain"},
	} {
		dir := filepath.Join(t.TempDir(), "net")
		o := typed(t, append([]string{"init", dir}, strings.Split(c.args, "|")...)...)
		if o.status == statusOK || !strings.Contains(o.stderr, c.want) {
			t.Errorf("%s: status %d, %q; want %q", c.args, o.status, o.stderr, c.want)
		}
		if left := contents(t, dir); len(left) > 0 {
			t.Errorf("%s left %d files", c.args, len(left))
		}
	}
}

// TestInitForServersAlone: without a proxy the game servers' hosts are the whole network.
func TestInitForServersAlone(t *testing.T) {
	s := initialised(t, "--proxies", "")
	o := typed(t, "config", "check", filepath.Join(s.dir, defaultConfig), "--id", "survival-1")
	if o.status != statusOK || !strings.Contains(o.stdout, "carries the store, backend") || !strings.Contains(o.stdout, "moves its own players") {
		t.Errorf("status %d, %s%s", o.status, o.stdout, o.stderr)
	}
}

// TestCertificateNamesTheStore as other machines reach it.
func TestCertificateNamesTheStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "net")
	if o := typed(t, "init", dir, "--store-address", "store.example.net:4222"); o.status != statusOK {
		t.Fatal(o.stderr)
	}
	read := func(name string) *x509.Certificate {
		text, err := os.ReadFile(filepath.Join(dir, "tls", name))
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(text)
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	roots := x509.NewCertPool()
	roots.AddCert(read("ca.crt"))
	for _, name := range []string{"store.example.net", "127.0.0.1", "localhost"} {
		if _, err := read("store.crt").Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("as %s: %v", name, err)
		}
	}
	if _, err := read("store.crt").Verify(x509.VerifyOptions{DNSName: "elsewhere.example.net", Roots: roots}); err == nil {
		t.Error("it is good for any name")
	}
}

// TestCertificateIsReadAgain for the next connection once its files have changed; what cannot be
// read changes nothing.
func TestCertificateIsReadAgain(t *testing.T) {
	s := initialised(t)
	n, err := network.Load(filepath.Join(s.dir, defaultConfig))
	if err != nil {
		t.Fatal(err)
	}
	shown, err := listenerCertificate(n, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	serial := func() string { return shown.current().Leaf.SerialNumber.String() }
	first := serial()
	write(t, filepath.Join(s.dir, "tls/store.crt"), "half a file")
	if serial() != first {
		t.Error("a broken file was taken")
	}
	removeFiles(t, s.dir, "tls/store.crt", "tls/store.key")
	if serial() != first {
		t.Error("the certificate is gone with its file")
	}
	if o := typed(t, "init", s.dir); o.status != statusOK {
		t.Fatal(o.stderr)
	}
	if serial() == first {
		t.Error("the new one is not shown")
	}
}

// TestCertificatesAreCheckedBeforeTheStart, with the key of network.yml that names them.
func TestCertificatesAreCheckedBeforeTheStart(t *testing.T) {
	for _, c := range []struct{ file, text, id, want string }{
		{"tls/store.crt", "no certificate", "proxy-1", "security.tls.cert"},
		{"tls/store.key", "", "proxy-1", "security.tls.key"},
		{"tls/ca.crt", "no certificate", "survival-1", "security.tls.ca"},
	} {
		s := initialised(t)
		removeFiles(t, s.dir, c.file)
		if c.text != "" {
			write(t, filepath.Join(s.dir, c.file), c.text)
		}
		err := s.up(t, c.id, envSecret+"=").end(t)
		var refused *network.Error
		if !errors.As(err, &refused) || refused.Code != network.CodeBadCertificate || refused.Key != c.want || refused.Line == 0 {
			t.Errorf("%s: %v", c.file, err)
		}
		if o := typed(t, "config", "check", filepath.Join(s.dir, defaultConfig), "--id", c.id); o.status != statusFailed || !strings.Contains(o.stdout, c.want) {
			t.Errorf("config check of %s: status %d, %s", c.file, o.status, o.stdout)
		}
	}
}

// TestAStrangersStoreIsNotBelieved: a carrier whose certificate another authority signed.
func TestAStrangersStoreIsNotBelieved(t *testing.T) {
	s := initialised(t)
	s.up(t, "proxy-1", envSecret+"=").says(t, "msg=ready")
	removeFiles(t, s.dir, "tls/ca.crt")
	other := initialised(t)
	write(t, filepath.Join(s.dir, "tls/ca.crt"), contents(t, other.dir)["tls/ca.crt"])
	err := s.up(t, "survival-1", envSecret+"=").end(t)
	if err == nil || !strings.Contains(err.Error(), "its certificate is not to be trusted") || !strings.Contains(err.Error(), "security.tls.ca") {
		t.Errorf("ended with %v", err)
	}
}
