package api

import (
	"context"
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
)

// Caller is who asks, as far as the token says.
type Caller struct {
	Token  events.APITokenID
	Name   string
	Scopes []events.Scope
}

// may tells that the token has a scope.
func (c *Caller) may(s events.Scope) bool { return slices.Contains(c.Scopes, s) }

// who is the caller in what is decided: the name of the token, and whoever it says stands behind it.
func (c *Caller) who(behind string) string {
	if behind == "" {
		return c.Name
	}
	return c.Name + ": " + behind
}

type callerKey struct{}

func withCaller(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerOf is who asks. Only operations that need no token have none.
func callerOf(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}

// authenticate finds out whose token stands in an Authorization header. All that can be wrong with
// it is one answer, so that nobody learns which tokens there are.
func authenticate(tokens map[events.APITokenID]*events.TokenSet, authorization string, now time.Time) (*Caller, *Problem) {
	text, bearer := cutBearer(authorization)
	if !bearer {
		return nil, refuse(events.AuthFailed, "want the header Authorization: Bearer <token>; `landfall token add` makes one")
	}
	b, err := events.ParseBearer(text)
	if err != nil {
		return nil, refuse(events.AuthFailed, err.Error())
	}
	t := tokens[b.ID]
	if t == nil || subtle.ConstantTimeCompare([]byte(t.Hash), []byte(b.Hash())) != 1 || !now.Before(time.Unix(t.Expires, 0)) {
		return nil, refuse(events.AuthFailed, fmt.Sprintf("the token %s is not known, has expired, or was revoked", b))
	}
	return &Caller{Token: t.ID, Name: t.Name, Scopes: t.Scopes}, nil
}

func cutBearer(authorization string) (string, bool) {
	scheme, text, ok := strings.Cut(authorization, " ")
	return strings.TrimSpace(text), ok && strings.EqualFold(scheme, "Bearer")
}
