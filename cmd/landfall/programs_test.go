package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// apiNetwork is a carrier that is a proxy, and a host that only serves the API.
func apiNetwork(storePort int, security string) string {
	return fmt.Sprintf("network: { name: test, enabled: true }\nedge: { domain: %s }\n%s%shosts:\n%s  console: { api: \"127.0.0.1:0\" }\n",
		domain, carriedYAML("proxy-1", storePort), security, edgeYAML("proxy-1", 0))
}

var apiListens = regexp.MustCompile(`msg=API listen=(\S+)`)

// apiOf is where a host serves the API.
func apiOf(t *testing.T, l *life) string {
	t.Helper()
	l.says(t, "msg=API listen=")
	return apiListens.FindStringSubmatch(l.saying("msg=API listen=")[0])[1]
}

// A host that only serves the API is a dispatcher of its own: it sees the fleet, and what is decided
// over it is obeyed by the others. It ends in order.
func TestUpServesTheAPI(t *testing.T) {
	port := freePort(t)
	s := newSite(t, apiNetwork(port, ""))
	proxy, console := s.up(t, "proxy-1"), s.up(t, "console")
	url := "http://" + apiOf(t, console)
	console.says(t, "msg=wired host=console", "API on 127.0.0.1:0", "dispatches=api", "triggers=[api]")
	console.says(t, "msg=ready")
	t.Setenv(envSecret, encoded(realSecret))
	status, token, errs := landfall(t.Context(), "token", "add", "tester", "--scope", "read,control", "--config", filepath.Join(s.dir, "network.yml"))
	if status != statusOK {
		t.Fatalf("%s", errs)
	}
	token = strings.TrimSpace(token)
	fleet := askAPI(t, http.DefaultClient, token, "GET", url+"/v1/fleet", "")
	if !strings.Contains(fleet, `"proxy":"console"`) || !strings.Contains(fleet, `"kinds":["api"]`) || !strings.Contains(fleet, `"proxy":"proxy-1"`) {
		t.Errorf("the fleet: %s", fleet)
	}
	if got := askAPI(t, http.DefaultClient, token, "POST", url+"/v1/control/drain", `{"host":"proxy-1","on":true,"why":"a test"}`); !strings.Contains(got, `"who":"tester"`) {
		t.Errorf("drained: %s", got)
	}
	proxy.says(t, `msg="drained: the ports are closed`, "who=tester")
	status, login, errs := landfall(t.Context(), "token", "login", "--config", filepath.Join(s.dir, "network.yml"))
	if status != statusOK {
		t.Fatalf("%s", errs)
	}
	overNATS(t, fmt.Sprintf("nats://127.0.0.1:%d", port), strings.Fields(login), token)
	console.stop(t)
	proxy.stop(t)
}

// overNATS asks for the fleet as any NATS client can, with a token and without.
func overNATS(t *testing.T, url string, login []string, token string) {
	t.Helper()
	nc, err := natsgo.Connect(url, natsgo.UserInfo(login[0], login[1]), natsgo.CustomInboxPrefix("_INBOX."+login[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	q := natsgo.NewMsg("landfall.api.fleet.get")
	a, err := nc.RequestMsgWithContext(t.Context(), q)
	if err != nil || a.Header.Get("Nats-Service-Error-Code") != "401" || a.Header.Get("Nats-Service-Error") != "AUTH_FAILED" {
		t.Errorf("without a token: %v %+v", err, a)
	}
	q.Header.Set("Authorization", "Bearer "+token)
	if a, err = nc.RequestMsgWithContext(t.Context(), q); err != nil || !strings.Contains(string(a.Data), `"proxy":"console"`) {
		t.Errorf("with a token: %v %s", err, a.Data)
	}
}

// askAPI asks until the token is known, and gives the answer.
func askAPI(t *testing.T, client *http.Client, token, method, url, body string) string {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		q, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+token)
		q.Header.Set("Content-Type", "application/json")
		a, err := client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(a.Body)
		_ = a.Body.Close()
		switch {
		case err != nil:
			t.Fatal(err)
		case a.StatusCode == http.StatusOK || a.StatusCode == http.StatusAccepted:
			return string(text)
		case a.StatusCode != http.StatusUnauthorized && a.StatusCode != http.StatusServiceUnavailable:
			t.Fatalf("%s %s: %d %s", method, url, a.StatusCode, text)
		}
		<-look.C
	}
}

// With security.tls the API speaks TLS and nothing else; a certificate that cannot be used, and a
// port that is taken, are one clear line at the start.
func TestUpServesTheAPIOverTLS(t *testing.T) {
	port := freePort(t)
	text := apiNetwork(port, "security: { tls: { cert: api.pem, key: api.key, ca: api.pem } }\n")
	s := newSite(t, strings.Replace(text, "nats://", "tls://", 1)) // the carrier speaks TLS then, too
	roots := loopbackCertificate(t, s.dir)
	s.up(t, "proxy-1")
	console := s.up(t, "console")
	at := apiOf(t, console)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	a, err := client.Get("https://" + at + "/healthz")
	if err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", a, err)
	}
	_ = a.Body.Close()
	if a, err := http.Get("http://" + at + "/healthz"); err == nil {
		if _ = a.Body.Close(); a.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %d", a.StatusCode)
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, "api.key"), []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = s.up(t, "console").end(t)
	if err == nil || !strings.Contains(err.Error(), "security.tls.cert") || !strings.Contains(err.Error(), "allowed: a certificate in PEM and its key") {
		t.Errorf("a key that is none: %v", err)
	}
	blocked := taken(t)
	other := newSite(t, strings.Replace(apiNetwork(port, ""), "127.0.0.1:0\" }\n", blocked.Addr().String()+"\" }\n", 1))
	if err := other.up(t, "console").end(t); err == nil || !strings.Contains(err.Error(), "hosts.console.api") || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a port that is taken: %v", err)
	}
}

// loopbackCertificate writes one for the loopback address, and gives who vouches for it.
func loopbackCertificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "api"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	for _, f := range []struct {
		name, kind string
		raw        []byte
	}{{"api.pem", "CERTIFICATE", raw}, {"api.key", "PRIVATE KEY", secret}} {
		var text bytes.Buffer
		if err := pem.Encode(&text, &pem.Block{Type: f.kind, Bytes: f.raw}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f.name), text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		roots.AppendCertsFromPEM(text.Bytes())
	}
	return roots
}
