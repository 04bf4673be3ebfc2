package streams

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// Micro is a NATS micro service: `nats micro ls`, `info` and `stats` show it, and any NATS client can call it.
type Micro struct {
	Name        string // of the service, [A-Za-z0-9_-]
	Version     string // semantic
	Description string
	Metadata    map[string]string
	Endpoints   []MicroEndpoint
}

// MicroEndpoint is one thing that can be asked for.
type MicroEndpoint struct {
	Name     string // its subject is ProgramsPrefix and this
	Metadata map[string]string
	// Call answers a request; header gives a header's first value. A status above 0 is that of an
	// error, and code its reason; body then describes it. It runs concurrently with itself, at most
	// 256 at once over all endpoints; more wait.
	Call func(ctx context.Context, header func(name string) string, body []byte) (out []byte, status int, code string)
}

// ProgramsPrefix is where programs ask.
const ProgramsPrefix = "landfall.api."

// maxProgramWait bounds what one request of a program may take.
const maxProgramWait = 90 * time.Second

// served is what the stats of an endpoint say as data: the framework's own end when a request is
// taken, not when it is answered.
type served struct {
	answered atomic.Int64
	refused  atomic.Int64 // of them
	micros   atomic.Int64
}

// ServeMicro serves until ctx ends; of several hosts with the same service one gets each request. It
// returns after the last answer.
func (s *Store) ServeMicro(ctx context.Context, m Micro) error {
	var running sync.WaitGroup
	defer running.Wait()
	slots, stats := make(chan struct{}, maxHandlers), map[string]*served{}
	for _, e := range m.Endpoints {
		stats[endpointName(e.Name)] = &served{}
	}
	service, err := micro.AddService(s.read.nc, micro.Config{
		Name: m.Name, Version: m.Version, Description: m.Description, Metadata: m.Metadata, QueueGroup: "programs",
		StatsHandler: func(e *micro.Endpoint) any {
			x := stats[e.Name]
			n := x.answered.Load()
			return map[string]int64{"answered": n, "refused": x.refused.Load(), "averageMicroseconds": x.micros.Load() / max(n, 1)}
		},
	})
	if err != nil {
		return fmt.Errorf("serve %s: %w", m.Name, err)
	}
	for _, e := range m.Endpoints {
		count := stats[endpointName(e.Name)]
		handle := micro.HandlerFunc(func(r micro.Request) {
			began := time.Now()
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				if s.answerProgram(ctx, e, r) {
					count.refused.Add(1)
				}
				count.answered.Add(1)
				count.micros.Add(time.Since(began).Microseconds())
			})
		})
		if err := service.AddEndpoint(endpointName(e.Name), handle, micro.WithEndpointSubject(ProgramsPrefix+e.Name), micro.WithEndpointMetadata(e.Metadata)); err != nil {
			_ = service.Stop() // the first error says it
			return fmt.Errorf("serve %s: %w", e.Name, err)
		}
	}
	<-ctx.Done()
	if err := service.Stop(); err != nil && s.read.nc.IsConnected() {
		s.log.Warn("service not stopped in order", "service", m.Name, "error", err)
	}
	return ctx.Err()
}

// endpointName is a name as the framework allows it.
func endpointName(name string) string { return strings.ReplaceAll(name, ".", "-") }

// answerProgram answers one request, and tells whether it was refused.
func (s *Store) answerProgram(ctx context.Context, e MicroEndpoint, r micro.Request) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxProgramWait)
	defer cancel()
	out, status, code := e.Call(ctx, func(name string) string { return nats.Header(r.Headers()).Get(name) }, r.Data())
	var err error
	if status > 0 {
		err = r.Error(strconv.Itoa(status), code, out)
	} else {
		err = r.Respond(out, micro.WithHeaders(micro.Headers{"Content-Type": []string{"application/json"}}))
	}
	if err != nil {
		s.log.Warn("answer not sent", "endpoint", e.Name, "error", err)
	}
	return status > 0
}
