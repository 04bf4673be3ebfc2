package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	authorityYears   = 20
	certificateYears = 3
)

// certificates makes the store's certificate if it is lacking, and the authority that signs it
// if there is none.
func (k *kit) certificates() error {
	t := k.net.Security.TLS
	if t.Cert == "" {
		return nil
	}
	cert, key, ca := k.net.File(t.Cert), k.net.File(t.Key), k.net.File(t.CA)
	switch {
	case exists(cert) && exists(key):
		k.kept(cert)
		k.kept(key)
		if ca != "" && exists(ca) {
			k.kept(ca)
		}
		return nil
	case exists(cert) || exists(key):
		return fmt.Errorf("of %s and %s only one is there: bring the other back, or remove both and have new ones made", cert, key)
	case ca == "":
		return fmt.Errorf("%s is lacking, and security.tls.ca names no authority to sign one: name a file there, or bring the certificate", cert)
	}
	issuer, err := k.authority(ca)
	if err != nil {
		return err
	}
	shown, secret, err := issuer.issue("store of "+k.net.Network.Name, storeNames(k.net.Store.URL, k.net.Store.Listen))
	if err != nil {
		return err
	}
	return errors.Join(k.make(cert, shown), k.make(key, secret))
}

// authorityKey is where the key of the authority is, "" when it is not here.
func (k *kit) authorityKey() string {
	if k.net.Security.TLS.CA == "" {
		return ""
	}
	if key := keyBeside(k.net.File(k.net.Security.TLS.CA)); exists(key) {
		return key
	}
	return ""
}

func keyBeside(cert string) string { return strings.TrimSuffix(cert, filepath.Ext(cert)) + ".key" }

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// authority reads the network's own, or makes it.
func (k *kit) authority(file string) (*authority, error) {
	secret := keyBeside(file)
	switch {
	case exists(file) && exists(secret):
		k.kept(file)
		k.kept(secret)
		return readAuthority(file, secret)
	case exists(file):
		return nil, fmt.Errorf("%s is there, but not its key %s: run init where the key is kept, or remove the certificate and have a new authority made, which every host must then get", file, secret)
	case exists(secret):
		return nil, fmt.Errorf("%s is there, but not its certificate %s: bring it back", secret, file)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := unsigned("authority of "+k.net.Network.Name, authorityYears)
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	a := &authority{cert: template, key: key}
	shown, hidden, err := a.sign(template, key)
	if err != nil {
		return nil, err
	}
	return a, errors.Join(k.make(file, shown), k.make(secret, hidden))
}

func readAuthority(cert, key string) (*authority, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return nil, fmt.Errorf("%s is no authority: it may sign nothing", cert)
	}
	return &authority{cert: pair.Leaf, key: signer}, nil
}

// issue makes a certificate for a listener that is reached by these names, and its key.
func (a *authority) issue(subject string, names []string) (cert, key []byte, err error) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := unsigned(subject, certificateYears)
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return a.sign(template, own)
}

func (a *authority) sign(template *x509.Certificate, own *ecdsa.PrivateKey) (cert, key []byte, err error) {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, own.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), nil
}

// unsigned is good from an hour ago on: clocks differ.
func unsigned(subject string, years int) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic("make a serial number: " + err.Error()) // the system has no randomness: nothing can go on
	}
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: subject}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(years, 0, 0)}
}

// storeNames are those by which a store is reached: from its URLs, its listener, and this machine.
func storeNames(urls, listen string) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	add := func(host string) {
		if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) && !slices.Contains(names, host) {
			names = append(names, host)
		}
	}
	for one := range strings.SplitSeq(urls, ",") {
		if u, err := url.Parse(strings.TrimSpace(one)); err == nil {
			add(u.Hostname())
		}
	}
	if host, _, err := net.SplitHostPort(listen); err == nil {
		add(host)
	}
	return names
}
