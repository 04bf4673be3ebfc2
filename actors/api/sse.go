package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/landfall/landfall/events"
)

const (
	// keepAlive is how often an idle stream says that it is alive.
	keepAlive = 15 * time.Second
	// writePatience is how long a reader may leave what was sent to it unread.
	writePatience = 10 * time.Second
)

// stream is one open stream of server-sent events.
type stream struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// addStream registers an operation whose answer is a stream of server-sent events, which run
// writes until ctx ends: with the connection, the token, or this host. What open refuses is answered
// as any refusal is.
func addStream[I any](s *Service, r route, data any, open func(ctx context.Context, in *I) (run func(ctx context.Context, out *stream) error, err error)) {
	op := r.operation()
	op.Responses = map[string]*huma.Response{"200": {
		Description: "Server-sent events: id is the sequence, event the kind, data one JSON object a line. A line that begins with a colon says that the stream is alive.",
		Content: map[string]*huma.MediaType{"text/event-stream": {
			Schema: &huma.Schema{Type: huma.TypeString, Description: "The events; the data of each is described by the schema in x-data.", Extensions: map[string]any{
				"x-data": s.api.OpenAPI().Components.Schemas.Schema(typeOf(data), true, ""),
			}},
		}},
	}}
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
		leave, free := s.streams.sit()
		if !free {
			return nil, refuse(events.RateLimited, "as many streams are open here as may be")
		}
		run, err := open(ctx, in)
		if err != nil {
			leave()
			return nil, problemOf(err)
		}
		return &huma.StreamResponse{Body: func(h huma.Context) {
			defer leave()
			_, w := humago.Unwrap(h)
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("X-Accel-Buffering", "no")
			out := &stream{w: w, rc: http.NewResponseController(w)}
			ctx, cancel := context.WithCancel(h.Context())
			defer cancel()
			go s.whileGood(ctx, cancel, callerOf(ctx))
			if err := run(ctx, out); err != nil && ctx.Err() == nil {
				s.cfg.Logger.Info("a stream of the API ended", "token", callerOf(ctx).Name, "error", err)
			}
		}}, nil
	})
}

// whileGood ends a stream once its token is revoked or has expired.
func (s *Service) whileGood(ctx context.Context, end func(), c *Caller) {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			b := s.backing.Load()
			if t := b.Dispatcher.View().Controls().Tokens[c.Token]; t == nil || !s.cfg.Now().Before(time.Unix(t.Expires, 0)) {
				end()
				return
			}
		}
	}
}

// send writes one event. An error means that nobody reads any more.
func (o *stream) send(id uint64, kind string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return o.write(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", id, kind, raw))
}

// alive says that there is nothing to say.
func (o *stream) alive() error { return o.write(": alive\n\n") }

func (o *stream) write(text string) error {
	if err := o.rc.SetWriteDeadline(time.Now().Add(writePatience)); err != nil {
		return err
	}
	if _, err := o.w.Write([]byte(text)); err != nil {
		return err
	}
	return o.rc.Flush()
}
