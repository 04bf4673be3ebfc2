package events

import (
	"crypto/ed25519"
	"crypto/hmac"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

// Keyring signs in one name, and verifies everybody's signature. A network that only shares a
// secret signs with the first of its secrets and believes all of them (two during a rotation).
// Where hosts have keys of their own, each signs with its own, and what is believed of whom the
// operator says in identity facts. Keyrings that came of one another by As know the same. Safe
// for concurrent use.
type Keyring struct {
	own   ed25519.PrivateKey // nil: signs with the first secret
	known *atomic.Pointer[roster]
	learn *sync.Mutex // held while the roster is replaced
}

// roster is all that a keyring verifies with. It is not changed after it was made.
type roster struct {
	secrets  []Key
	operator ed25519.PublicKey // nil: a network that only shares a secret
	hosts    map[HostID]*identity
	byKey    map[string][]bearer // by id of key
}

// bearer is one key of an identity.
type bearer struct {
	*identity
	at int
}

// NewKeyring knows the shared secrets, the signing one first. Without any it signs nothing
// until As gives it a key.
func NewKeyring(secrets ...Key) *Keyring {
	k := &Keyring{known: &atomic.Pointer[roster]{}, learn: &sync.Mutex{}}
	k.known.Store(&roster{secrets: secrets})
	return k
}

// As gives a keyring that knows the same, now and later, and signs with a host's own key.
func (k *Keyring) As(own ed25519.PrivateKey) *Keyring {
	return &Keyring{own: own, known: k.known, learn: k.learn}
}

// Secrets replaces the shared secrets.
func (k *Keyring) Secrets(secrets ...Key) {
	k.change(func(r *roster) { r.secrets = secrets })
}

// Trust makes the keyring believe identity facts that the operator signed.
func (k *Keyring) Trust(operator ed25519.PublicKey) {
	k.change(func(r *roster) { r.operator = operator })
}

// change replaces the roster by a copy that f has changed.
func (k *Keyring) change(f func(r *roster)) {
	k.learn.Lock()
	defer k.learn.Unlock()
	next := *k.known.Load()
	f(&next)
	next.byKey = map[string][]bearer{}
	for _, i := range next.hosts {
		for at, public := range i.keys {
			id := HostKeyID(public)
			next.byKey[id] = append(next.byKey[id], bearer{i, at})
		}
	}
	k.known.Store(&next)
}

// Learn takes in an identity fact: what it says of a host replaces what was known, unless that
// stands behind it in the log. It refuses what the operator has not signed.
func (k *Keyring) Learn(r Record) *Refusal {
	if refusal := Genuine(k, r); refusal != nil {
		return refusal
	}
	e, _ := Open(k, r)
	f, _ := e.Fact.(*IdentitySet)
	made, err := newIdentity(*f, r)
	if err != nil {
		return Refuse(Malformed, err.Error())
	}
	k.change(func(r *roster) {
		if was := r.hosts[f.Host]; was != nil && was.record.Seq > made.record.Seq {
			return
		}
		r.hosts = maps.Clone(r.hosts)
		if r.hosts == nil {
			r.hosts = map[HostID]*identity{}
		}
		r.hosts[f.Host] = made
	})
	return nil
}

// Genuine tells that an identity fact is the operator's, wherever it comes from, without
// believing it yet; nil: it is.
func Genuine(k *Keyring, r Record) *Refusal {
	if !k.Keyed() {
		return Refuse(UnknownKey, "no operator's key is known here")
	}
	e, refusal := Open(k, r)
	if _, identity := e.Fact.(*IdentitySet); refusal == nil && !identity {
		return Refuse(Malformed, "not an identity")
	}
	return refusal
}

// Forget drops every identity: the log they stood in is another one now.
func (k *Keyring) Forget() {
	k.change(func(r *roster) { r.hosts = nil })
}

// Identities gives what is believed of each host that has an identity.
func (k *Keyring) Identities() map[HostID]IdentitySet {
	out := map[HostID]IdentitySet{}
	for id, i := range k.known.Load().hosts {
		out[id] = i.set
	}
	return out
}

// Identity gives the fact about a host as it stands in the log, for somebody who cannot read it.
func (k *Keyring) Identity(id HostID) (Record, bool) {
	i := k.known.Load().hosts[id]
	if i == nil {
		return Record{}, false
	}
	return i.record, true
}

// Keyed tells that hosts may have keys of their own.
func (k *Keyring) Keyed() bool { return k.known.Load().operator != nil }

// Stranger names the host that a message says it is from, if it is signed with a host's own key
// that is not known here, and might be: an identity fact could introduce it.
func (k *Keyring) Stranger(h Header) (HostID, bool) {
	r := k.known.Load()
	kid, _, err := parseSignature(h[HeaderSig])
	if err != nil || r.operator == nil || !strings.HasPrefix(kid, hostKeyPrefix) || kid == HostKeyID(r.operator) {
		return "", false
	}
	s, err := ParseSource(h[HeaderSource])
	if err != nil {
		return "", false
	}
	for _, b := range r.byKey[kid] {
		if b.set.Host == s.ID {
			return "", false
		}
	}
	return s.ID, true
}

// Sign gives the value of the Landfall-Sig header.
func (k *Keyring) Sign(subject string, h Header, body []byte) string {
	if k.own != nil {
		public, _ := k.own.Public().(ed25519.PublicKey)
		return signature(HostKeyID(public), ed25519.Sign(k.own, Canonical(subject, h, body)))
	}
	secrets := k.known.Load().secrets
	if len(secrets) == 0 {
		return "" // nobody believes it
	}
	return signature(secrets[0].ID, mac(secrets[0], subject, h, body))
}

// Verify judges what was heard just now: a request, an answer, news. It refuses with UNKNOWN_KEY
// when it cannot tell yet, with BAD_SIGNATURE or WRONG_ACTOR when it can.
func (k *Keyring) Verify(subject string, h Header, body []byte) *Refusal {
	return k.known.Load().verify(place{}, subject, h, body)
}

// VerifyRecord judges what stands in the log, by what its signer might sign at that sequence.
func (k *Keyring) VerifyRecord(r Record) *Refusal {
	return k.known.Load().verify(place{r.Bucket, r.Seq}, r.Bucket.Subject(r.Key), r.Header, r.Body)
}

func (r *roster) verify(at place, subject string, h Header, body []byte) *Refusal {
	kid, sig, err := parseSignature(h[HeaderSig])
	if err != nil {
		return Refuse(BadSignature, err.Error())
	}
	bySecret := !strings.HasPrefix(kid, hostKeyPrefix)
	if strings.HasPrefix(subject, Control.Subject(identityPrefix)) && r.operator != nil && kid != HostKeyID(r.operator) {
		return Refuse(WrongActor, "who a host is only the operator's key says, not "+kid)
	}
	if bySecret {
		return r.verifySecret(at, kid, sig, subject, h, body)
	}
	return r.verifyHost(at, kid, sig, subject, h, body)
}

func (r *roster) verifySecret(at place, kid string, sig []byte, subject string, h Header, body []byte) *Refusal {
	if root := r.hosts[RootID]; root != nil && at.reaches(root.set.Alone) {
		return Refuse(WrongActor, "the shared secret speaks for nobody here")
	}
	for _, key := range r.secrets {
		if key.ID != kid {
			continue
		}
		if !hmac.Equal(sig, mac(key, subject, h, body)) {
			return Refuse(BadSignature, "does not match key "+kid)
		}
		if s, err := ParseSource(h[HeaderSource]); err == nil {
			if host := r.hosts[s.ID]; host != nil && at.reaches(host.set.Alone) {
				return Refuse(WrongActor, fmt.Sprintf("%s has a key of its own, and %s is a secret", s.ID, kid))
			}
		}
		return nil
	}
	return Refuse(UnknownKey, "key "+kid)
}

func (r *roster) verifyHost(at place, kid string, sig []byte, subject string, h Header, body []byte) *Refusal {
	if r.operator == nil {
		return Refuse(UnknownKey, "key "+kid+" of a host, and the operator's key (network.operatorKey) is not known here")
	}
	signed := Canonical(subject, h, body)
	s, err := ParseSource(h[HeaderSource])
	if err != nil {
		return Refuse(Malformed, err.Error())
	}
	if kid == HostKeyID(r.operator) {
		switch {
		case !ed25519.Verify(r.operator, signed, sig):
			return Refuse(BadSignature, "does not match the operator's key")
		case s.Kind != SourceOperator || s.ID != RootID:
			return Refuse(WrongActor, fmt.Sprintf("the operator's key speaks for %s", s))
		}
		return nil
	}
	refusal := Refuse(UnknownKey, fmt.Sprintf("key %s of %s", kid, s.ID))
	for _, b := range r.byKey[kid] {
		if !ed25519.Verify(b.keys[b.at], signed, sig) {
			refusal = Refuse(BadSignature, "does not match key "+kid)
			continue
		}
		switch {
		case b.set.Host != s.ID || !b.set.Role.speaksAs(s.Kind):
			return Refuse(WrongActor, fmt.Sprintf("key %s of the %s %s speaks for %s", kid, b.set.Role, b.set.Host, s))
		case !b.set.Keys[b.at].good(at):
			return Refuse(BadSignature, fmt.Sprintf("key %s of %s is not good there", kid, b.set.Host))
		}
		return nil
	}
	return refusal
}
