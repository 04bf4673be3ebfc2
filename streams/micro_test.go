package streams_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/landfall/landfall/streams"
)

// A program with the login of programs, and no client library of ours, finds the service and calls it.
func TestMicro(t *testing.T) {
	srv := roleServer(t)
	st := connect(t, as(srv, streams.RoleDispatcher, "d1"))
	ctx, cancel := context.WithCancel(t.Context())
	held, release := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- st.ServeMicro(ctx, streams.Micro{
			Name: "landfall", Version: "1.2.3", Description: "a test", Metadata: map[string]string{"host": "d1"},
			Endpoints: []streams.MicroEndpoint{
				{Name: "things.get", Metadata: map[string]string{"scope": "read"}, Call: func(_ context.Context, header func(string) string, body []byte) ([]byte, int, string) {
					if header("Authorization") == "" {
						return []byte(`{"code":"AUTH_FAILED"}`), 401, "AUTH_FAILED"
					}
					return append([]byte(header("Authorization")+" "), body...), 0, ""
				}},
				{Name: "things.wait", Call: func(context.Context, func(string) string, []byte) ([]byte, int, string) {
					close(held)
					<-release
					return []byte("late"), 0, ""
				}},
			},
		})
	}()
	nc := dialBare(t, as(srv, streams.RoleProgram, "p1"))
	defer nc.Close()
	ask := func(subject, token string) *nats.Msg {
		t.Helper()
		m := nats.NewMsg(subject)
		m.Data = []byte("in")
		if token != "" {
			m.Header.Set("Authorization", token)
		}
		for {
			a, err := nc.RequestMsg(m, 5*time.Second)
			if errors.Is(err, nats.ErrNoResponders) && t.Context().Err() == nil {
				continue // the service is still to stand
			}
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
	}
	if a := ask("landfall.api.things.get", "Bearer x"); string(a.Data) != "Bearer x in" || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %v", a.Data, a.Header)
	}
	if a := ask("landfall.api.things.get", ""); a.Header.Get("Nats-Service-Error-Code") != "401" || a.Header.Get("Nats-Service-Error") != "AUTH_FAILED" || !strings.Contains(string(a.Data), "code") {
		t.Errorf("%s %v", a.Data, a.Header)
	}
	var info struct {
		Name, Version string
		Metadata      map[string]string
		Endpoints     []struct{ Name, Subject string }
	}
	if err := json.Unmarshal(ask("$SRV.INFO.landfall", "").Data, &info); err != nil || info.Version != "1.2.3" || info.Metadata["host"] != "d1" ||
		len(info.Endpoints) != 2 || info.Endpoints[0].Subject != "landfall.api.things.get" {
		t.Errorf("%+v %v", info, err)
	}
	if stats := string(ask("$SRV.STATS.landfall", "").Data); !strings.Contains(stats, `"num_requests":2`) || !strings.Contains(stats, `"answered":2,"averageMicroseconds"`) || !strings.Contains(stats, `"refused":1`) {
		t.Errorf("stats %s", stats)
	}

	// One that takes its time holds up nobody, and is answered when the host ends meanwhile.
	var late sync.WaitGroup
	late.Go(func() {
		if a := ask("landfall.api.things.wait", ""); string(a.Data) != "late" {
			t.Errorf("%s", a.Data)
		}
	})
	<-held
	ask("landfall.api.things.get", "Bearer x")
	cancel()
	close(release)
	late.Wait()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
