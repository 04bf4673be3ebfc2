package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
)

// logger hands the server's own remarks down. What it calls fatal is kept, because the
// server would only stop working without telling its starter.
type logger struct {
	log    *slog.Logger
	fatal  chan error // has room for the first
	denied func(Denial)

	mu      sync.Mutex
	denials map[string]uint64 // by login
	names   map[string]string // of the logins, by what the server calls them
}

// Denial is something that the store did not let a login do.
type Denial struct {
	Login   string // such as "backend.survival-1"
	Act     string // "publish" or "subscribe"
	Subject string
}

// denialForm is how the server remarks on a denial. It has no other way to tell it to the
// program that it runs in.
var denialForm = regexp.MustCompile(`(?:user|nkey):([^"]+)" - (Publish|Subscription) Violation - Subject "((?:[^"\\]|\\.)*)"`)

func parseDenial(remark string) (d Denial, ok bool) {
	m := denialForm.FindStringSubmatch(remark)
	if m == nil {
		return d, false
	}
	act := "publish"
	if m[2] == "Subscription" {
		act = "subscribe"
	}
	return Denial{Login: m[1], Act: act, Subject: m[3]}, true
}

// ourLogins is what the server says of every password that is not hashed. Ours are derived
// from the secret, random, and never in a file but holder.json: no operator can act on it.
const ourLogins = "Plaintext passwords detected"

func newLogger(log *slog.Logger) *logger {
	return &logger{log: log, fatal: make(chan error, 1)}
}

func (l *logger) Noticef(format string, v ...any) { l.log.Debug("store: " + fmt.Sprintf(format, v...)) }
func (l *logger) Warnf(format string, v ...any) {
	if text := fmt.Sprintf(format, v...); !strings.HasPrefix(text, ourLogins) {
		l.log.Warn("store: " + text)
	}
}
func (l *logger) Debugf(string, ...any) {}
func (l *logger) Tracef(string, ...any) {}

func (l *logger) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	d, ok := parseDenial(text)
	if !ok {
		l.log.Error("store: " + text)
		return
	}
	d.Login = l.nameOf(d.Login)
	if n := l.count(d.Login); n&(n-1) == 0 { // 1, 2, 4, 8, …: whoever is denied must not fill the log
		l.log.Warn("store: a login was denied something", "login", d.Login, "act", d.Act, "subject", d.Subject, "times", n)
	}
	if l.denied != nil {
		l.denied(d)
	}
}

// know names the logins: "backend.survival-1", by password or key.
func (l *logger) know(users []User) {
	names := map[string]string{}
	for _, u := range users {
		names[u.Name+u.Key] = string(u.Role) + "." + string(u.ID)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names = names
}

func (l *logger) nameOf(login string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name, ok := l.names[login]; ok {
		return name
	}
	return login
}

func (l *logger) count(login string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.denials == nil {
		l.denials = map[string]uint64{}
	}
	l.denials[login]++
	return l.denials[login]
}

func (l *logger) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.log.Error("store: " + text)
	select {
	case l.fatal <- errors.New(text):
	default:
	}
}
