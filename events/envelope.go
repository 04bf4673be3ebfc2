package events

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Headers of the CloudEvents NATS binding in binary mode, and ours.
const (
	HeaderSpec        = "ce-specversion"
	HeaderID          = "ce-id"
	HeaderType        = "ce-type"
	HeaderSource      = "ce-source"
	HeaderTime        = "ce-time"
	HeaderKey         = "ce-subject"
	HeaderContent     = "ce-datacontenttype"
	HeaderCorrelation = "ce-correlationid"
	HeaderCausation   = "ce-causationid"
	HeaderSchema      = "ce-schemaversion"
	HeaderPrev        = "ce-prev"
	HeaderSig         = "Landfall-Sig"
	HeaderDeadline    = "ce-deadlinems" // of requests: how long the caller waits, in milliseconds
)

// signedHeaders in the fixed order of the canonical form. docs/WIRE.md lists them too.
var signedHeaders = []string{
	HeaderSpec, HeaderID, HeaderType, HeaderSource, HeaderTime, HeaderKey, HeaderContent,
	HeaderCorrelation, HeaderCausation, HeaderSchema, HeaderPrev, HeaderDeadline,
}

const contentMsgpack = "application/msgpack"

// SourceKind says in which role a host speaks.
type SourceKind string

// Roles of a source. The session kinds are those of dispatchers.
const (
	SourceEdge     SourceKind = "edge"
	SourceRelay    SourceKind = "relay"
	SourceDirect   SourceKind = "direct"
	SourceAPI      SourceKind = "api"
	SourceBackend  SourceKind = "backend"
	SourceOperator SourceKind = "operator"
)

// Dispatcher tells that hosts of this role write facts.
func (k SourceKind) Dispatcher() bool {
	switch k {
	case SourceEdge, SourceRelay, SourceDirect, SourceAPI:
		return true
	case SourceBackend, SourceOperator:
		return false
	}
	return false
}

// Source is who wrote a fact: "/edge/<id>/<incarnation>".
type Source struct {
	Kind        SourceKind
	ID          HostID
	Incarnation Incarnation
}

func (s Source) String() string {
	return "/" + string(s.Kind) + "/" + string(s.ID) + "/" + s.Incarnation.String()
}

// ParseSource reads what String wrote.
func ParseSource(text string) (Source, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 4 || parts[0] != "" {
		return Source{}, fmt.Errorf("source %q: want /<role>/<id>/<incarnation>", text)
	}
	id, err := ParseHostID(parts[2])
	if err != nil {
		return Source{}, err
	}
	inc, err := ParseID[Incarnation](parts[3])
	if err != nil {
		return Source{}, err
	}
	return Source{Kind: SourceKind(parts[1]), ID: id, Incarnation: inc}, nil
}

// Envelope is what surrounds a fact.
type Envelope struct {
	ID          EventID
	Source      Source
	Time        time.Time // the writer's clock, for people only: nothing is ever decided by it
	Key         string
	Correlation TransferID
	Causation   EventID
	Schema      int
	Prev        uint64
}

// Event is a fact with its envelope and its place in the log.
type Event struct {
	Envelope
	Bucket Bucket
	Seq    uint64
	Stored time.Time
	Fact   Fact
}

// Seal encodes and signs a fact.
func Seal(k *Keyring, e Envelope, f Fact) (Message, error) {
	kind, err := KindOf(f)
	if err != nil {
		return Message{}, err
	}
	if refusal := checkActor(e.Source, kind.Bucket, e.Key, f); refusal != nil {
		return Message{}, fmt.Errorf("seal %s %s: %w", kind.Type, e.Key, refusal)
	}
	body, err := Marshal(f)
	if err != nil {
		return Message{}, err
	}
	h := Header{
		HeaderSpec:    "1.0",
		HeaderID:      e.ID.String(),
		HeaderType:    kind.Type,
		HeaderSource:  e.Source.String(),
		HeaderTime:    e.Time.UTC().Format(time.RFC3339Nano),
		HeaderKey:     e.Key,
		HeaderContent: contentMsgpack,
		HeaderSchema:  strconv.Itoa(SchemaVersion),
		HeaderPrev:    strconv.FormatUint(e.Prev, 10),
	}
	if !e.Correlation.IsZero() {
		h[HeaderCorrelation] = e.Correlation.String()
	}
	if !e.Causation.IsZero() {
		h[HeaderCausation] = e.Causation.String()
	}
	h[HeaderSig] = k.Sign(kind.Bucket.Subject(e.Key), h, body)
	return Message{Bucket: kind.Bucket, Key: e.Key, Prev: e.Prev, Header: h, Body: body}, nil
}

// Open verifies and decodes a stored record. The refusal says what is wrong with it:
// STRAY_MARKER, MALFORMED, UNKNOWN_TYPE, UNKNOWN_KEY, BAD_SIGNATURE or WRONG_ACTOR.
// Whether Prev fits what came before is for the fold to say.
func Open(k *Keyring, r Record) (Event, *Refusal) {
	e := Event{Bucket: r.Bucket, Seq: r.Seq, Stored: r.Stored}
	typ := r.Header[HeaderType]
	if typ == "" {
		return e, Refuse(Stray, "no "+HeaderType+" header")
	}
	if refusal := k.VerifyRecord(r); refusal != nil {
		return e, refusal
	}
	env, err := parseEnvelope(r)
	if err != nil {
		return e, Refuse(Malformed, err.Error())
	}
	e.Envelope = env
	kind, ok := kindByType[typ]
	if !ok || kind.Bucket != r.Bucket {
		return e, Refuse(UnknownType, typ)
	}
	e.Fact = kind.New()
	if err := UnmarshalExact(r.Body, e.Fact); err != nil {
		return e, Refuse(Malformed, err.Error())
	}
	return e, checkActor(e.Source, r.Bucket, r.Key, e.Fact)
}

func parseEnvelope(r Record) (e Envelope, err error) {
	h := r.Header
	if h[HeaderSpec] != "1.0" || h[HeaderContent] != contentMsgpack {
		return e, fmt.Errorf("%s %q, %s %q: want 1.0 and %s", HeaderSpec, h[HeaderSpec], HeaderContent, h[HeaderContent], contentMsgpack)
	}
	if h[HeaderKey] != r.Key {
		return e, fmt.Errorf("%s %q stands under key %q", HeaderKey, h[HeaderKey], r.Key)
	}
	e.Key = r.Key
	if e.ID, err = ParseID[EventID](h[HeaderID]); err != nil {
		return e, err
	}
	if e.Source, err = ParseSource(h[HeaderSource]); err != nil {
		return e, err
	}
	if e.Time, err = time.Parse(time.RFC3339Nano, h[HeaderTime]); err != nil {
		return e, err
	}
	if e.Schema, err = strconv.Atoi(h[HeaderSchema]); err != nil {
		return e, err
	}
	if e.Prev, err = strconv.ParseUint(h[HeaderPrev], 10, 64); err != nil {
		return e, err
	}
	if err := e.Correlation.UnmarshalText([]byte(h[HeaderCorrelation])); err != nil {
		return e, err
	}
	return e, e.Causation.UnmarshalText([]byte(h[HeaderCausation]))
}
