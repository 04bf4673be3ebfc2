package api

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Config makes a Service.
type Config struct {
	Now     func() time.Time
	NewID   func() [16]byte
	Logger  *slog.Logger
	Network string // its name, for the document's title
	Version string // of the program
}

// Source is the log as the event stream reads it. Implementation: streams.
type Source interface {
	projections.Tailer
	// Info tells where a bucket begins and ends.
	Info(ctx context.Context, b events.Bucket) (events.StreamState, error)
	// After gives the records above a sequence in order, up to the end as it is now.
	After(ctx context.Context, b events.Bucket, seq uint64) iter.Seq2[events.Record, error]
}

// Backing is what a Service passes everything on to.
type Backing struct {
	Dispatcher *actors.Dispatcher
	Source     Source
	// Operator writes what is decided with the scope control; nil: this host takes no decisions.
	Operator *actors.Operator
	// NoTransfers says that programs may not ask for transfers here.
	NoTransfers bool
}

// Service answers programs. It can be asked before it has a Backing, and says then that the log is
// out of sight. Safe for concurrent use.
type Service struct {
	cfg     Config
	mux     *http.ServeMux
	api     huma.API
	ops     []Operation
	backing atomic.Pointer[Backing]
	limits  struct{ tokens, addresses limiter }
	streams seats

	allocating atomic.Pointer[Allocating]
}

// New makes a Service.
func New(cfg Config) (*Service, error) {
	if cfg.Now == nil || cfg.NewID == nil || cfg.Logger == nil {
		return nil, errors.New("api: clock, id maker and logger are mandatory")
	}
	s := &Service{cfg: cfg, mux: http.NewServeMux()}
	s.SetLimits(ShippedLimits())
	s.SetAllocating(Allocating{})
	s.api = humago.New(s.mux, s.document())
	s.api.UseMiddleware(s.admit)
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	s.mux.HandleFunc("GET /readyz", s.tellReady)
	s.mux.HandleFunc("/", s.notFound)
	s.routes()
	return s, nil
}

// routes registers every operation, in the order of the document.
func (s *Service) routes() {
	s.routeTransfers()
	s.routeNetwork()
	s.routeAllocations()
	s.routeControl()
	s.routeEvents()
}

// document is the head of the OpenAPI document.
func (s *Service) document() huma.Config {
	c := huma.DefaultConfig("Landfall", s.cfg.Version)
	c.Info.Description = "Moves players between the servers of a game network, exactly once. Every refusal carries a stable code; see docs/api.md."
	c.Info.License = &huma.License{Name: "Apache 2.0", Identifier: "Apache-2.0"}
	c.DocsPath, c.SchemasPath, c.CreateHooks = "", "", nil
	c.Formats = map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		bearerScheme: {Type: "http", Scheme: "bearer", Description: "A token of `landfall token add`."},
	}
	return c
}

const bearerScheme = "bearer"

// Attach hands the service over to a dispatcher.
func (s *Service) Attach(b Backing) { s.backing.Store(&b) }

// SetLimits replaces the limits. It does not block; it holds from the next request on.
func (s *Service) SetLimits(l Limits) {
	s.limits.tokens.set(l.TokenPerSecond, l.TokenBurst)
	s.limits.addresses.set(l.AddressPerSecond, l.AddressBurst)
	s.streams.set(l.Streams)
}

// Handle serves more under the same address, such as pages for people. The pattern is that of
// http.ServeMux; what is served there looks after its own callers.
func (s *Service) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	s.mux.ServeHTTP(w, r)
}

// maxBody bounds a request.
const maxBody = 64 << 10

// OpenAPI is the OpenAPI 3.1 document, as JSON.
func (s *Service) OpenAPI() *huma.OpenAPI { return s.api.OpenAPI() }

// ready gives what the service passes on to, once it sees the log.
func (s *Service) ready() (*Backing, *Problem) {
	b := s.backing.Load()
	if b == nil || !b.Dispatcher.Ready() {
		return nil, refuse(events.TransportDown, "this host does not see the log now")
	}
	return b, nil
}

func (s *Service) tellReady(w http.ResponseWriter, _ *http.Request) {
	if _, p := s.ready(); p != nil {
		writeProblem(w, p)
		return
	}
	_, _ = w.Write([]byte("ready\n"))
}

func (s *Service) notFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, refuse(events.NotKnown, "nothing is at "+r.Method+" "+r.URL.Path+"; /openapi.json tells what is"))
}
