package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

var secret = bytes.Repeat([]byte("landfall"), 4)

func user(role streams.Role, id events.HostID) embedded.User {
	name, password := streams.Login(secret, role, id)
	return embedded.User{Role: role, ID: id, Name: name, Password: password}
}

// The example on a real store: a seat is taken on it, and its token lets the player in.
func TestTheExampleAdmitsPlayers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server, err := embedded.Open(ctx, embedded.Config{
		Dir: t.TempDir(), Network: "example", Creator: "up", MaxBytes: 1 << 30, Listen: "127.0.0.1:0", Users: []embedded.User{user(streams.RoleDispatcher, "api"), user(streams.RoleBackend, "zone-1")},
	})
	if err != nil {
		t.Fatal(err)
	}
	carrier, err := streams.Connect(ctx, server.Connection())
	if err != nil {
		t.Fatal(err)
	}
	if err := carrier.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	key, err := events.NewKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	d, err := actors.NewDispatcher(actors.DispatcherConfig{
		Identity: actors.Identity{
			Source: events.Source{Kind: events.SourceAPI, ID: "api", Incarnation: events.Incarnation(uuid.New())},
			Keys:   events.NewKeyring(key), Now: time.Now, NewID: func() [16]byte { return uuid.Must(uuid.NewV7()) },
		},
		Log: carrier, Bus: carrier, Logger: slog.New(slog.DiscardHandler), Kind: events.KindAPI,
	})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = d.Run(ctx) })
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, server.URL(), "zone-1", "127.0.0.1:0", 1, secret) }()

	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for x := d.View().Fleet().Instance("zone-1"); x == nil || x.State != events.Ready; x = d.View().Fleet().Instance("zone-1") {
		<-look.C
	}
	seat, refusal := d.Allocate(ctx, actors.AllocationAsk{
		Player: events.NativePlayer("allocation", "ada"), Name: "ada", Transfer: events.TransferID(uuid.Must(uuid.NewV7())), Via: "test",
	})
	if refusal != nil {
		t.Fatal(refusal)
	}
	for _, c := range []struct{ says, want string }{
		{"eve " + seat.Transfer.Token.String(), "WRONG_PLAYER"}, {"ada x", "parse token"}, {"ada " + seat.Transfer.Token.String(), "welcome ada"},
	} {
		conn, err := net.Dial("tcp", seat.Instance.Gameplay.Address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(conn, c.says)
		if got, err := bufio.NewReader(conn).ReadString('\n'); !strings.HasPrefix(got, c.want) {
			t.Errorf("said %q, heard %q %v", c.says, got, err)
		}
		conn.Close()
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	running.Wait()
	_, _ = carrier.Close(), server.Close()
}
