package api

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/landfall/landfall/events"
)

// Problem is why an operation was not carried out (RFC 9457), with the stable code of the refusal.
type Problem struct {
	Title  string              `json:"title" example:"Conflict" doc:"The HTTP status in words."`
	Status int                 `json:"status" example:"409" doc:"The HTTP status."`
	Code   string              `json:"code" example:"ALREADY_MOVING" doc:"Why; stable, for programs to go by."`
	Detail string              `json:"detail,omitempty" doc:"More, for people."`
	Errors []*huma.ErrorDetail `json:"errors,omitempty" doc:"What is wrong with the request, and where."`

	after time.Duration // when it may go better, 0: nobody knows
}

// Error is the refusal in words.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Code
	}
	return p.Code + ": " + p.Detail
}

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	switch {
	case p.after > 0:
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.after.Seconds()))))
	case p.Status == http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	case p.Status == http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	}
	return h
}

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// statusOf says which HTTP status a code has; every other code means that what was asked for does
// not fit what is now.
var statusOf = map[events.Code]int{
	events.BadRequest:    http.StatusUnprocessableEntity,
	events.AuthFailed:    http.StatusUnauthorized,
	events.ScopeMissing:  http.StatusForbidden,
	events.NoPermission:  http.StatusForbidden,
	events.Disabled:      http.StatusForbidden,
	events.NotKnown:      http.StatusNotFound,
	events.RateLimited:   http.StatusTooManyRequests,
	events.Resting:       http.StatusTooManyRequests,
	events.LimitReached:  http.StatusTooManyRequests,
	events.KillSwitch:    http.StatusServiceUnavailable,
	events.TransportDown: http.StatusServiceUnavailable,
	events.LogFull:       http.StatusServiceUnavailable,
	events.LineFull:      http.StatusServiceUnavailable,
	events.NoCapacity:    http.StatusServiceUnavailable,
	events.BadScene:      http.StatusBadRequest,
	events.KeyReused:     http.StatusUnprocessableEntity,
}

// JSON is the problem as it travels.
func (p *Problem) JSON() []byte {
	raw, err := json.Marshal(p)
	if err != nil {
		panic("api: write a problem: " + err.Error()) // plain values
	}
	return raw
}

// StatusOf is the HTTP status of a refusal.
func StatusOf(code events.Code) int {
	if status, ok := statusOf[code]; ok {
		return status
	}
	return http.StatusConflict
}

// refuse makes the answer of a refusal.
func refuse(code events.Code, detail string) *Problem {
	status := StatusOf(code)
	return &Problem{Title: http.StatusText(status), Status: status, Code: string(code), Detail: detail}
}

// problemOf gives any error a code: what no operation names is a log that cannot be reached.
func problemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var r *events.Refusal
	if errors.As(err, &r) {
		return refuse(r.Code, r.Detail)
	}
	return refuse(events.TransportDown, err.Error())
}

// codeOf is the code of what HTTP itself finds wrong.
func codeOf(status int) events.Code {
	switch status {
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return events.NotKnown
	case http.StatusUnauthorized:
		return events.AuthFailed
	case http.StatusTooManyRequests:
		return events.RateLimited
	case http.StatusInternalServerError:
		return events.TransportDown
	}
	return events.BadRequest
}

// init gives the faults that huma itself finds in a request our form, and lets lists be lists, never
// null: huma reads these variables of its package.
func init() {
	huma.DefaultArrayNullable = false
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		p := &Problem{Title: http.StatusText(status), Status: status, Code: string(codeOf(status)), Detail: msg}
		for _, err := range errs {
			if err == nil {
				continue
			}
			var known *huma.ErrorDetail
			if !errors.As(err, &known) {
				known = &huma.ErrorDetail{Message: strings.TrimSpace(err.Error())}
			}
			p.Errors = append(p.Errors, known)
		}
		return p
	}
}
