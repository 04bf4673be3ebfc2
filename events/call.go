package events

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Wire is a request, an answer or a piece of news as it travels.
type Wire struct {
	Header Header
	Body   []byte
}

// headerSilence marks what is not to be sent. It never travels.
const headerSilence = "Landfall-Silence"

// Silence is what the handler of a request gives that is not to be answered: to the one who
// asked it is as if the request had not arrived.
func Silence() Wire { return Wire{Header: Header{headerSilence: "1"}} }

// Silent tells that nothing is to be sent.
func (w Wire) Silent() bool { return w.Header[headerSilence] != "" }

// Call is the envelope of a Wire.
type Call struct {
	ID       RequestID
	Source   Source
	Cause    RequestID     // of an answer: the request
	Deadline time.Duration // how long the caller waits, at most MaxDeadline; 0 when nobody waits
}

const (
	contentJSON = "application/json"
	callType    = "landfall.call.v1" // of every request, answer and piece of news; the verb stands in the subject
)

// MaxDeadline is the longest time a caller may say that it waits.
const MaxDeadline = time.Minute

// Verb names one request. Its wire name stands in the subject.
type Verb string

// Verbs of requests and news.
const (
	VerbReserve  Verb = "reserve"
	VerbRelease  Verb = "release"
	VerbMove     Verb = "move"
	VerbTell     Verb = "tell"
	VerbRequest  Verb = "request"
	VerbArrived  Verb = "arrived"
	VerbPlaced   Verb = "placed"
	VerbState    Verb = "state"
	VerbCancel   Verb = "cancel"
	VerbConfig   Verb = "config"
	VerbSeen     Verb = "seen"
	VerbHolds    Verb = "holds"
	VerbSettings Verb = "settings"
	VerbWhoIs    Verb = "whois"
	VerbJoined   Verb = "joined"
	VerbLeft     Verb = "left"
	VerbComing   Verb = "coming"
)

// BackendVerbs are answered by a backend, AskVerbs by any dispatcher, DispatcherVerbs by one,
// NewsVerbs by nobody.
var (
	BackendVerbs    = []Verb{VerbReserve, VerbRelease, VerbMove, VerbTell, VerbConfig, VerbSeen}
	AskVerbs        = []Verb{VerbRequest, VerbArrived, VerbPlaced, VerbState, VerbCancel, VerbSettings, VerbWhoIs}
	DispatcherVerbs = []Verb{VerbHolds}
	NewsVerbs       = []Verb{VerbJoined, VerbLeft, VerbComing}
)

// ToBackend is where backend id answers a verb.
func ToBackend(id HostID, v Verb) string { return "landfall.backend." + string(id) + "." + string(v) }

// ToDispatcher is where dispatcher id answers a verb.
func ToDispatcher(id HostID, v Verb) string {
	return "landfall.dispatcher." + string(id) + "." + string(v)
}

// AskOf is where backend id asks the dispatchers; "*" as id hears all.
func AskOf(id HostID, v Verb) string { return "landfall.ask.backend." + string(id) + "." + string(v) }

// NewsOf is where backend id announces; "*" as id hears all.
func NewsOf(id HostID, v Verb) string { return "landfall.news.backend." + string(id) + "." + string(v) }

// TriggerOf is where it is said that an event happened for a player; "*" as name hears all.
func TriggerOf(event string) string { return triggerPrefix + event }

const triggerPrefix = "landfall.trigger."

// EventOf is the reverse of TriggerOf.
func EventOf(subject string) string { return strings.TrimPrefix(subject, triggerPrefix) }

// SealCall encodes and signs a request, an answer (Cause set; subject is the request's) or news.
func SealCall(k *Keyring, c Call, at time.Time, subject string, body any) (Wire, error) {
	raw, err := Marshal(body)
	if err != nil {
		return Wire{}, fmt.Errorf("seal %s: %w", subject, err)
	}
	h := Header{
		HeaderSpec:    "1.0",
		HeaderID:      c.ID.String(),
		HeaderType:    callType,
		HeaderSource:  c.Source.String(),
		HeaderTime:    at.UTC().Format(time.RFC3339Nano),
		HeaderKey:     subject,
		HeaderContent: contentMsgpack,
		HeaderSchema:  strconv.Itoa(SchemaVersion),
	}
	if !c.Cause.IsZero() {
		h[HeaderCausation] = c.Cause.String()
	}
	if c.Deadline > 0 {
		h[HeaderDeadline] = strconv.FormatInt(min(max(c.Deadline, time.Millisecond), MaxDeadline).Milliseconds(), 10)
	}
	h[HeaderSig] = k.Sign(subject, h, raw)
	return Wire{Header: h, Body: raw}, nil
}

// OpenCall verifies a Wire that came over subject and decodes its body (MessagePack, or
// JSON when its content type says so).
func OpenCall(k *Keyring, subject string, w Wire, body any) (Call, *Refusal) {
	var c Call
	if refusal := k.Verify(subject, w.Header, w.Body); refusal != nil {
		return c, Refuse(AuthFailed, refusal.Error())
	}
	c, err := parseCall(w.Header)
	if err != nil {
		return c, Refuse(BadRequest, err.Error())
	}
	if err := decodeCall(w, body); err != nil {
		return c, Refuse(BadRequest, err.Error())
	}
	return c, nil
}

func decodeCall(w Wire, body any) error {
	switch content := w.Header[HeaderContent]; content {
	case contentMsgpack:
		return Unmarshal(w.Body, body)
	case contentJSON:
		return unmarshalJSON(w.Body, body)
	default:
		return fmt.Errorf("%s %q: want %s or %s", HeaderContent, content, contentMsgpack, contentJSON)
	}
}

func parseCall(h Header) (c Call, err error) {
	if h[HeaderSpec] != "1.0" || h[HeaderType] != callType {
		return c, fmt.Errorf("%s %q, %s %q: want 1.0 and %s", HeaderSpec, h[HeaderSpec], HeaderType, h[HeaderType], callType)
	}
	if c.ID, err = ParseID[RequestID](h[HeaderID]); err != nil {
		return c, err
	}
	if at := h[HeaderTime]; at != "" {
		if _, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return c, fmt.Errorf("%s %q: want RFC 3339, such as 2026-11-30T12:00:00Z", HeaderTime, at)
		}
	}
	if c.Source, err = ParseSource(h[HeaderSource]); err != nil {
		return c, err
	}
	if err = c.Cause.UnmarshalText([]byte(h[HeaderCausation])); err != nil {
		return c, err
	}
	if d := h[HeaderDeadline]; d != "" {
		ms, err := strconv.ParseInt(d, 10, 64)
		if err != nil || ms < 0 || ms > MaxDeadline.Milliseconds() {
			return c, fmt.Errorf("%s %q: want 0 to %d", HeaderDeadline, d, MaxDeadline.Milliseconds())
		}
		c.Deadline = time.Duration(ms) * time.Millisecond
	}
	return c, nil
}

// ErrNobody says that a request found no one to answer it.
var ErrNobody = errors.New("nobody answers")
