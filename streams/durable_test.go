package streams_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
	"github.com/landfall/landfall/streams/streamtest/r1"
)

// A writer under grouped durability, beside a carrier that the test plays: the store itself is
// lazy, and whoever asks for the disk waits for the test.

// question is what the test's carrier was asked.
type question struct {
	bucket events.Bucket
	answer func(failure string)
}

// playCarrier hears what is asked of the carrier of srv.
func playCarrier(t *testing.T, srv *embedded.Server) <-chan question {
	t.Helper()
	c := srv.Connection()
	nc, err := nats.Connect("", nats.InProcessServer(c.InProcess), nats.UserInfo(c.User, c.Password), nats.CustomInboxPrefix(streams.InboxPrefix(c.Role, c.ID)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	asked := make(chan question, 1000)
	_, err = nc.Subscribe(streams.DurableSubject, func(m *nats.Msg) {
		var ask streams.DurableAsk
		if err := json.Unmarshal(m.Data, &ask); err != nil {
			t.Error(err)
		}
		asked <- question{bucket: ask.Bucket, answer: func(failure string) {
			body, err := json.Marshal(streams.DurableAnswer{Error: failure})
			if err == nil {
				err = m.Respond(body)
			}
			if err != nil {
				t.Error(err)
			}
		}}
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return asked
}

// grouped is a store whose carrier is played, and a writer that asks it.
func grouped(t *testing.T) (*streams.Store, <-chan question) {
	t.Helper()
	srv := openServer(t, testConfig(t))
	ensured(t, srv.Connection())
	c := srv.Connection()
	c.Durability = streams.Grouped
	return connect(t, c), playCarrier(t, srv)
}

// TestAppendWaitsForTheDisk: it is in the log at once, and counts once the carrier has said so.
func TestAppendWaitsForTheDisk(t *testing.T) {
	st, asked := grouped(t)
	done := appending(t.Context(), st, message(events.Transfers, key(1, 1), 0))
	q := <-asked
	if q.bucket != events.Transfers {
		t.Errorf("asked for %s", q.bucket)
	}
	if _, found, err := st.Last(t.Context(), events.Transfers, key(1, 1)); err != nil || !found {
		t.Errorf("it is not in the log while the disk works: %v", err)
	}
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	q.answer("")
	if err := <-done; err != nil {
		t.Error(err)
	}
	// Heartbeats may be lost.
	mustAppend(t, st, message(events.Fleet, "backend.b", 0))
	if len(asked) != 0 {
		t.Error("asked for a heartbeat")
	}
}

// appending appends in the background.
func appending(ctx context.Context, st *streams.Store, m events.Message) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := st.Append(ctx, m)
		done <- err
	}()
	return done
}

// awaitStored returns once a key is in the log.
func awaitStored(t *testing.T, st *streams.Store, key string) {
	t.Helper()
	for {
		_, found, err := st.Last(t.Context(), events.Transfers, key)
		if err != nil {
			t.Fatal(err)
		}
		if found {
			return
		}
	}
}

// TestWaitingAppendsShareAQuestion: however many wait for the disk.
func TestWaitingAppendsShareAQuestion(t *testing.T) {
	st, asked := grouped(t)
	const writers = 50
	var done []<-chan error
	for i := range writers {
		done = append(done, appending(t.Context(), st, message(events.Transfers, key(i, 1), 0)))
	}
	first := <-asked
	for i := range writers {
		awaitStored(t, st, key(i, 1))
	}
	if len(asked) != 0 {
		t.Error("asked again before the first answer")
	}
	first.answer("")
	questions := 1
	for open := len(done); open > 0; {
		select {
		case q := <-asked:
			questions++
			q.answer("")
		case err := <-done[open-1]:
			open--
			if err != nil {
				t.Error(err)
			}
		}
	}
	if questions > writers/2 {
		t.Errorf("%d appends asked %d questions", writers, questions)
	}
}

// TestDiskThatFailsIsNoRefusal: the fact stands in the log, and nobody knows whether it stays.
func TestDiskThatFailsIsNoRefusal(t *testing.T) {
	st, asked := grouped(t)
	m := message(events.Transfers, key(1, 1), 0)
	done := appending(t.Context(), st, m)
	(<-asked).answer("the disk failed")
	if failed := wantReason(t, <-done, events.Unknown); !strings.Contains(failed.Error(), "the disk failed") {
		t.Errorf("does not say why: %v", failed)
	}
	done = appending(t.Context(), st, m)
	(<-asked).answer("")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if info, err := st.Info(t.Context(), events.Transfers); err != nil || info.Last != 1 {
		t.Errorf("the same fact again, with a disk: the log ends at %d, %v", info.Last, err)
	}
}

// TestGivingUpOnTheDisk leaves the outcome unknown, and the next try, which finds the fact in the
// log, waits for the disk as the first did.
func TestGivingUpOnTheDisk(t *testing.T) {
	st, asked := grouped(t)
	m := message(events.Transfers, key(1, 1), 0)
	ctx, giveUp := context.WithCancel(t.Context())
	done := appending(ctx, st, m)
	first := <-asked
	giveUp()
	wantReason(t, <-done, events.Unknown)

	done = appending(t.Context(), st, m)
	first.answer("") // which may have come before the second was found
	(<-asked).answer("")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestConnectionLostBeforeTheAnswer: whoever waits learns at once that nobody knows, and the next
// try asks on the connection that it has then.
func TestConnectionLostBeforeTheAnswer(t *testing.T) {
	srv := openServer(t, testConfig(t))
	reader := ensured(t, srv.Connection())
	c := srv.Connection()
	g := r1.NewCable(c.InProcess, 0)
	c.Durability, c.InProcess = streams.Grouped, g
	st, asked := connect(t, c), playCarrier(t, srv)

	early := appending(t.Context(), st, message(events.Transfers, key(1, 1), 0))
	<-asked
	m := message(events.Transfers, key(2, 1), 0)
	late := appending(t.Context(), st, m) // its question waits behind the first
	awaitStored(t, reader, key(2, 1))
	g.Cut()
	wantReason(t, <-early, events.Unknown)
	wantReason(t, <-late, events.Unknown)
	g.Heal()
	for {
		done := appending(t.Context(), st, m)
		select {
		case q := <-asked:
			q.answer("")
			if err := <-done; err != nil {
				t.Error(err)
			}
			return
		case err := <-done:
			wantReason(t, err, events.Unknown) // not connected again yet
		}
	}
}

// TestDurabilityIsCompared: a host that believes something else of the carrier than it does
// fails at its start; one that does not know does as the carrier does.
func TestDurabilityIsCompared(t *testing.T) {
	for _, c := range []struct {
		carrier, host streams.Durability
		refused       string
	}{
		{streams.Grouped, streams.Grouped, ""},
		{streams.Grouped, streams.Always, "store.durability is always here, and the carrier of this store has it grouped"},
		{streams.Grouped, streams.Lazy, "store.durability is lazy here, and the carrier of this store has it grouped"},
		{streams.Grouped, "", ""},
		{streams.Always, streams.Grouped, "store.durability is grouped here, and that was asked of the store in vain: the carrier of this store does not offer it"},
		{streams.Lazy, streams.Grouped, "store.durability is grouped here, and that was asked of the store in vain: the carrier of this store does not offer it"},
		{streams.Always, streams.Always, ""},
		{streams.Always, "", ""},
	} {
		t.Run(fmt.Sprintf("carrier %s, host %s", c.carrier, c.host), func(t *testing.T) {
			dir := t.TempDir()
			r1.ForgetTimers()
			defer r1.ForgetTimers()
			synctest.Test(t, func(t *testing.T) {
				user := login(streams.RoleDispatcher, "d1")
				srv := openServer(t, embedded.Config{
					Dir: dir, Network: "net", Creator: "up", MaxBytes: testBytes, NoListener: true, Durability: c.carrier, Users: []embedded.User{user},
				})
				ensured(t, srv.Connection())
				conn := srv.Connection()
				conn.Role, conn.ID, conn.User, conn.Password = user.Role, user.ID, user.Name, user.Password
				conn.Carrier, conn.Durability, conn.Durable = false, c.host, nil
				st := connect(t, conn)
				err := st.Ensure(t.Context())
				if c.refused != "" {
					if err == nil || !strings.Contains(err.Error(), c.refused) {
						t.Errorf("got %v, want %q", err, c.refused)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				mustAppend(t, st, message(events.Transfers, key(1, 1), 0))
			})
		})
	}
}
