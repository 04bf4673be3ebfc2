package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// logger hands the server's own remarks down. What it calls fatal is kept, because the
// server would only stop working without telling its starter.
type logger struct {
	log   *slog.Logger
	fatal chan error // has room for the first
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
func (l *logger) Errorf(format string, v ...any) { l.log.Error("store: " + fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(string, ...any)          {}
func (l *logger) Tracef(string, ...any)          {}

func (l *logger) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.log.Error("store: " + text)
	select {
	case l.fatal <- errors.New(text):
	default:
	}
}
