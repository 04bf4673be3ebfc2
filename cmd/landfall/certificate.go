package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/landfall/landfall/cmd/landfall/network"
)

// certificate is what a listener shows, out of two files. It reads them again when either has
// changed, for the next connection that is made: a certificate is renewed without a restart.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu   sync.Mutex
	pair *tls.Certificate
	read [2]stamp // of the files as they were read, or refused, last
}

// stamp tells two versions of a file apart.
type stamp struct {
	changed time.Time
	size    int64
}

// listenerCertificate reads the certificate that network.yml names for the listeners of a host.
func listenerCertificate(n *network.Network, log *slog.Logger) (*certificate, error) {
	c := &certificate{cert: n.File(n.Security.TLS.Cert), key: n.File(n.Security.TLS.Key), log: log}
	c.read = c.stamps()
	if err := c.load(); err != nil {
		key := "security.tls.cert"
		if errors.Is(err, fs.ErrNotExist) && c.read[1] == (stamp{}) && c.read[0] != (stamp{}) {
			key = "security.tls.key"
		}
		return nil, n.At(network.CodeBadCertificate, key, "%v; allowed: a certificate in PEM and its key, as `landfall init` makes them", err)
	}
	return c, nil
}

// tls is the configuration of a listener.
func (c *certificate) tls() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil }}
}

// current is the certificate as the files have it, or had it when they were last in order.
func (c *certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.stamps(); now != c.read {
		c.read = now
		if err := c.load(); err != nil {
			c.log.Error("the certificate cannot be read again, the earlier one stays", "file", c.cert, "error", err)
		} else {
			c.log.Info("certificate read again", "file", c.cert, "until", c.pair.Leaf.NotAfter)
		}
	}
	return c.pair
}

func (c *certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	if now := time.Now(); now.After(pair.Leaf.NotAfter) {
		return fmt.Errorf("%s expired on %s", c.cert, pair.Leaf.NotAfter.Format(time.DateOnly))
	}
	c.pair = &pair
	return nil
}

func (c *certificate) stamps() (s [2]stamp) {
	for i, file := range []string{c.cert, c.key} {
		if info, err := os.Stat(file); err == nil {
			s[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return s
}

// authorities is the file of those who may have signed a store's certificate, and is found to
// be in order; "" when network.yml names none.
func authorities(n *network.Network) (string, error) {
	if n.Security.TLS.CA == "" {
		return "", nil
	}
	file := n.File(n.Security.TLS.CA)
	text, err := os.ReadFile(file) //nolint:gosec // the operator names it
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(text) {
		err = fmt.Errorf("%s holds no certificate", file)
	}
	if err != nil {
		return "", n.At(network.CodeBadCertificate, "security.tls.ca", "%v; allowed: certificates in PEM, as `landfall init` makes one", err)
	}
	return file, nil
}
