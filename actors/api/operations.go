package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/landfall/landfall/events"
)

// Operation is one thing that programs can ask for, as a transport other than HTTP carries it:
// JSON in, JSON out.
type Operation struct {
	Name    string // such as transfers.request
	Scope   events.Scope
	Summary string
	// Call carries it out for whoever shows a token, as an Authorization header would. The answer
	// is that of HTTP; a problem says why there is none.
	Call func(ctx context.Context, authorization string, body []byte) ([]byte, *Problem)
}

// Operations lists what can be asked for other than by HTTP: all but the streams.
func (s *Service) Operations() []Operation { return s.ops }

// route is how one operation is reached.
type route struct {
	name    string // of the operation: <things>.<verb>
	method  string
	path    string
	status  int // of a success; 0: 200
	scope   events.Scope
	tag     string
	summary string
	doc     string
	codes   []events.Code // refusals of its own, beside those that any operation has
}

// everyCode are the refusals that any operation can meet.
var everyCode = []events.Code{events.BadRequest, events.AuthFailed, events.ScopeMissing, events.RateLimited, events.TransportDown}

func (r route) operation() huma.Operation {
	status := r.status
	if status == 0 {
		status = http.StatusOK
	}
	op := huma.Operation{
		OperationID: strings.ReplaceAll(r.name, ".", "-"), Method: r.method, Path: r.path, DefaultStatus: status,
		Summary: r.summary, Description: r.describe(), Tags: []string{r.tag}, MaxBodyBytes: maxBody,
		Security: []map[string][]string{{bearerScheme: {string(r.scope)}}},
	}
	seen := map[int]bool{}
	for _, code := range append(r.codes, everyCode...) {
		if status := StatusOf(code); !seen[status] {
			seen[status] = true
			op.Errors = append(op.Errors, status)
		}
	}
	return op
}

func (r route) describe() string {
	text := r.doc + "\n\nScope: `" + string(r.scope) + "`."
	if len(r.codes) > 0 {
		list := make([]string, len(r.codes))
		for i, c := range r.codes {
			list[i] = "`" + string(c) + "`"
		}
		text += " Refusals: " + strings.Join(list, ", ") + "."
	}
	return strings.TrimSpace(text)
}

// answer is what huma makes a response of.
type answer[O any] struct{ Body *O }

// bodied is a request whose input is its body.
type bodied[I any] struct {
	Key  string `header:"Idempotency-Key" maxLength:"64" pattern:"^[!-~]*$" doc:"Names this request: the same key again, with the same token, gives what became of the first. A UUID is taken for the id itself."`
	Body I
}

// keyed is an input with an id of its own.
type keyed interface{ setKey(key string) }

// addBody registers an operation whose input is the body of a request.
func addBody[I, O any](s *Service, r route, do func(ctx context.Context, in *I) (*O, error)) {
	huma.Register(s.api, r.operation(), func(ctx context.Context, in *bodied[I]) (*answer[O], error) {
		if k, ok := any(&in.Body).(keyed); ok && in.Key != "" {
			k.setKey(in.Key)
		}
		out, err := do(ctx, &in.Body)
		return answered(out, err)
	})
	addCall(s, r, do)
}

// addPlain registers an operation whose input stands in the path and the query.
func addPlain[I, O any](s *Service, r route, do func(ctx context.Context, in *I) (*O, error)) {
	huma.Register(s.api, r.operation(), func(ctx context.Context, in *I) (*answer[O], error) {
		out, err := do(ctx, in)
		return answered(out, err)
	})
	addCall(s, r, do)
}

func answered[O any](out *O, err error) (*answer[O], error) {
	if err != nil {
		return nil, problemOf(err)
	}
	return &answer[O]{Body: out}, nil
}

// addCall registers an operation for other transports. Its input is held against the same bounds.
func addCall[I, O any](s *Service, r route, do func(ctx context.Context, in *I) (*O, error)) {
	registry := s.api.OpenAPI().Components.Schemas
	schema := huma.SchemaFromType(registry, reflect.TypeFor[I]())
	schema.PrecomputeMessages()
	s.ops = append(s.ops, Operation{Name: r.name, Scope: r.scope, Summary: r.summary, Call: func(ctx context.Context, authorization string, body []byte) ([]byte, *Problem) {
		caller, p := s.authorize(authorization, r.scope)
		if p != nil {
			return nil, p
		}
		in := new(I)
		if p := decode(registry, schema, body, in); p != nil {
			return nil, p
		}
		out, err := do(withCaller(ctx, caller), in)
		if err != nil {
			return nil, problemOf(err)
		}
		raw, err := json.Marshal(out)
		if err != nil {
			return nil, problemOf(err)
		}
		return raw, nil
	}})
}

// decode reads an input as strictly as HTTP does. An empty body is an empty object.
func decode(registry huma.Registry, schema *huma.Schema, body []byte, into any) *Problem {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	var plain any
	if err := json.Unmarshal(body, &plain); err != nil {
		return refuse(events.BadRequest, "the body is not JSON: "+err.Error())
	}
	found := &huma.ValidateResult{}
	huma.Validate(registry, schema, huma.NewPathBuffer([]byte("body"), 4), huma.ModeWriteToServer, plain, found)
	if len(found.Errors) > 0 {
		p := refuse(events.BadRequest, "validation failed")
		for _, err := range found.Errors {
			if d, ok := err.(*huma.ErrorDetail); ok { //nolint:errorlint // it is made there, and wrapped by nobody
				p.Errors = append(p.Errors, d)
			}
		}
		return p
	}
	if err := json.Unmarshal(body, into); err != nil {
		return refuse(events.BadRequest, err.Error())
	}
	return nil
}

// authorize lets the bearer of a token do what its scopes say, within the limits of a token.
func (s *Service) authorize(authorization string, scope events.Scope) (*Caller, *Problem) {
	b, p := s.ready()
	if p != nil {
		return nil, p
	}
	now := s.cfg.Now()
	caller, p := authenticate(b.Dispatcher.View().Controls().Tokens, authorization, now)
	if p != nil {
		return nil, p
	}
	if wait, ok := s.limits.tokens.take(string(caller.Token), now); !ok {
		p := refuse(events.RateLimited, "the token "+caller.Name+" asks too often")
		p.after = wait
		return nil, p
	}
	if !caller.may(scope) {
		return nil, refuse(events.ScopeMissing, "the token "+caller.Name+" lacks the scope "+string(scope))
	}
	return caller, nil
}

// admit stands before every operation over HTTP.
func (s *Service) admit(ctx huma.Context, next func(huma.Context)) {
	if wait, ok := s.limits.addresses.take(hostOf(ctx.RemoteAddr()), s.cfg.Now()); !ok {
		p := refuse(events.RateLimited, "this address asks too often")
		p.after = wait
		s.reject(ctx, p)
		return
	}
	caller, p := s.authorize(ctx.Header("Authorization"), scopeOf(ctx.Operation()))
	if p != nil {
		s.reject(ctx, p)
		return
	}
	next(huma.WithContext(ctx, withCaller(ctx.Context(), caller)))
}

func scopeOf(op *huma.Operation) events.Scope { return events.Scope(op.Security[0][bearerScheme][0]) }

// hostOf is an address without its port. All of an IPv6 /64 is one host.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return ip.Mask(net.CIDRMask(64, 128)).String()
	}
	return host
}

func (s *Service) reject(ctx huma.Context, p *Problem) {
	for name, values := range p.GetHeaders() {
		ctx.SetHeader(name, values[0])
	}
	ctx.SetHeader("Content-Type", p.ContentType(""))
	ctx.SetStatus(p.Status)
	_ = json.NewEncoder(ctx.BodyWriter()).Encode(p) // who asked has gone
}

func writeProblem(w http.ResponseWriter, p *Problem) {
	for name, values := range p.GetHeaders() {
		w.Header().Set(name, values[0])
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // who asked has gone
}
