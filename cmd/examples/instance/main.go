// Command instance is a game instance on a Landfall network, in as few lines as it takes: it beats,
// gives its own seats, and admits whoever shows the token of one. Its "game" is a line of text over
// TCP: a client sends its player id and its token, and hears whether it is in.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"time"

	"github.com/google/uuid"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	url := flag.String("store", "nats://127.0.0.1:4222", "store.url of network.yml")
	id := flag.String("id", "", "the placement: a host of network.yml")
	listen := flag.String("listen", "127.0.0.1:7000", "where players connect")
	seats := flag.Int("seats", 10, "how many players it takes")
	flag.Parse()
	if err := run(ctx, *url, events.HostID(*id), *listen, *seats, []byte(os.Getenv("LANDFALL_SECRET"))); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run is the instance, until ctx ends. secret is the network's, decoded.
func run(ctx context.Context, url string, id events.HostID, listen string, seats int, secret []byte) error {
	key, err := events.NewKey(secret)
	if err != nil {
		return err
	}
	user, password := streams.Login(secret, streams.RoleBackend, id)
	store, err := streams.Connect(ctx, streams.Config{URL: url, Role: streams.RoleBackend, ID: id, User: user, Password: password, AnySettings: true, NoRead: true})
	if err != nil {
		return err
	}
	defer store.Close()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	instance, err := actors.NewInstance(actors.InstanceConfig{
		Identity: actors.Identity{
			Source: events.Source{Kind: events.SourceBackend, ID: id, Incarnation: events.Incarnation(uuid.Must(uuid.NewV7()))},
			Keys:   events.NewKeyring(key), Now: time.Now, NewID: func() [16]byte { return uuid.Must(uuid.NewV7()) },
		},
		Log: store, Bus: store, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), MaxPlayers: seats,
		Endpoints: func() (events.EndpointBeat, events.EndpointBeat) {
			at := events.EndpointBeat{Address: l.Addr().String(), Health: events.EndpointHealthy}
			return at, at
		},
	})
	if err != nil {
		return err
	}
	go accept(ctx, l, instance)
	return instance.Run(ctx)
}

func accept(ctx context.Context, l net.Listener, instance *actors.Instance) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go play(ctx, conn, instance)
	}
}

// play is one player's visit: "<player> <token>", then whatever the player says, until the connection ends.
func play(ctx context.Context, conn net.Conn, instance *actors.Instance) {
	defer conn.Close()
	var player, text string
	lines := bufio.NewReader(conn)
	if _, err := fmt.Fscanln(lines, &player, &text); err != nil {
		return
	}
	token, err := events.ParseToken(text)
	if err != nil {
		fmt.Fprintln(conn, err)
		return
	}
	who := actors.Player{ID: events.NativePlayer("allocation", player), Name: player}
	if refusal := instance.Admit(ctx, who, token, events.JoinID(uuid.Must(uuid.NewV7()))); refusal != nil {
		fmt.Fprintln(conn, refusal)
		return
	}
	defer instance.Left(who.ID)
	fmt.Fprintln(conn, "welcome", player)
	_, _ = lines.WriteTo(conn) // an echo is the whole game
}
