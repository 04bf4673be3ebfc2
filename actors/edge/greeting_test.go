package edge

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

var testStatus = Status{Description: "Landfall", Version: "1.8 to 26.1", Online: 7, Max: 100}

// greeted is the end of a greeting on the server side.
type greeted struct {
	greeting
	err   error
	after time.Duration
}

// greetPipe greets the other end of a pipe, within a synctest bubble.
func greetPipe(server net.Conn) <-chan greeted {
	done := make(chan greeted, 1)
	go func() {
		defer server.Close()
		began := time.Now()
		deadline := began.Add(5 * time.Second)
		server.SetDeadline(deadline)
		g, err := greet(server, bufio.NewReader(server), deadline, 300*time.Millisecond, func() Status { return testStatus })
		done <- greeted{g, err, time.Since(began)}
	}()
	return done
}

// dribble writes b one byte each gap.
func dribble(t *testing.T, conn net.Conn, b []byte, gap time.Duration) {
	t.Helper()
	for i := range b {
		if _, err := conn.Write(b[i : i+1]); err != nil {
			t.Fatalf("byte %d: %v", i, err)
		}
		time.Sleep(gap) // the bubble's clock
	}
}

func TestGreetByteByByte(t *testing.T) {
	for _, o := range openings(t) {
		t.Run(o.version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				defer client.Close()
				done := greetPipe(server)
				dribble(t, client, o.bytes, 20*time.Millisecond)
				g := <-done
				if g.err != nil || g.start == nil || g.start.name != "Bot0" || g.hello.protocol != o.protocol {
					t.Fatalf("greeting %+v", g)
				}
				if got := join(g.helloFrame.raw, g.startFrame.raw); string(got) != string(o.bytes) {
					t.Fatalf("kept % x\nsent % x", got, o.bytes)
				}
			})
		})
	}
}

// A handshake of 254 or 382 bytes starts like a ping from before 1.7.
func TestGreetHandshakeThatLooksLegacy(t *testing.T) {
	for _, length := range []int{254, 382} {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			defer client.Close()
			done := greetPipe(server)
			sent := helloOfLength(t, length)
			if sent[0] != 0xFE {
				t.Fatalf("starts % x", sent[:2])
			}
			dribble(t, client, append(sent, start("Bot0", offlineBot0[:])...), 2*time.Millisecond)
			if g := <-done; g.err != nil || g.start == nil || CleanHost(g.hello.host) != "a.example" {
				t.Fatalf("%d bytes: %+v", length, g)
			}
		})
	}
}

func TestGreetLegacyPings(t *testing.T) {
	ping16 := append([]byte{0xFE, 0x01, 0xFA, 0, 11}, "\x00M\x00C\x00|\x00P\x00i\x00n\x00g\x00H\x00o\x00s\x00t"...)
	for _, c := range []struct {
		name  string
		ping  []byte
		want  string
		after time.Duration
	}{
		{"beta", []byte{0xFE}, "Landfall§7§100", 300 * time.Millisecond},
		{"1.4", []byte{0xFE, 0x01}, "§1\x00127\x001.8 to 26.1\x00Landfall\x007\x00100", 300 * time.Millisecond},
		{"1.6", ping16, "§1\x00127\x001.8 to 26.1\x00Landfall\x007\x00100", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				done := greetPipe(server)
				go client.Write(c.ping) // a pipe has no buffer, and the server need not read it all
				answer, err := io.ReadAll(client)
				if got := legacyText(t, answer); err != nil || got != c.want {
					t.Fatalf("answer %q, error %v", got, err)
				}
				if g := <-done; g.err != nil || g.start != nil || g.after != c.after {
					t.Fatalf("greeting %+v", g)
				}
			})
		})
	}
}

func TestGreetStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		done := greetPipe(server)
		client.Write(join(hello(767, "play.example.test", intentStatus), appendFrame(nil, 0, nil)))
		r := bufio.NewReader(client)
		f, err := readFrame(r, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := cursor{b: f.payload()}
		var got statusJSON
		if err := json.Unmarshal([]byte(c.string(maxFrame, "status")), &got); err != nil {
			t.Fatal(err)
		}
		if got.Version != (versionJSON{"1.8 to 26.1", 767}) || got.Players != (playersJSON{100, 7}) || got.Description["text"] != "Landfall" {
			t.Fatalf("status %+v", got)
		}
		client.Write(appendFrame(nil, 1, []byte("12345678")))
		if f, err = readFrame(r, 1); err != nil || f.id() != 1 || string(f.payload()) != "12345678" {
			t.Fatalf("pong %+v, %v", f, err)
		}
		if g := <-done; g.err != nil || g.start != nil {
			t.Fatalf("greeting %+v", g)
		}
	})
}

// The whole greeting has one deadline, however steadily a client dribbles.
func TestGreetSlowLoris(t *testing.T) {
	for name, gap := range map[string]time.Duration{"silent": time.Hour, "a byte a second": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				done := greetPipe(server)
				stop := make(chan struct{})
				go func() {
					defer close(stop)
					for _, b := range hello(767, "play.example.test", intentLogin) {
						time.Sleep(gap)
						if _, err := client.Write([]byte{b}); err != nil {
							return
						}
					}
				}()
				g := <-done
				if !errors.Is(g.err, os.ErrDeadlineExceeded) || g.after != 5*time.Second {
					t.Fatalf("ended after %v with %v", g.after, g.err)
				}
				client.Close()
				<-stop
			})
		})
	}
}

func TestGreetGarbageEndsAtOnce(t *testing.T) {
	for name, b := range map[string]string{
		"HTTP":       "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"TLS":        "\x16\x03\x01\x02\x00\x01\x00",
		"PROXY v1":   "PROXY TCP4 1.2.3.4 1.2.3.4 5 6\r\n", // not from a trusted peer
		"PROXY v2":   proxyV2Signature,
		"bad intent": string(hello(767, "a", 9)),
		"bad name":   string(join(hello(767, "a", 2), start("much too long a name"))),
		"bad ping":   string(join(hello(767, "a", 1), appendFrame(nil, 1, []byte("123")))),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				defer client.Close()
				done := greetPipe(server)
				go client.Write([]byte(b))
				if g := <-done; !errors.Is(g.err, errMalformed) || g.after != 0 {
					t.Fatalf("ended after %v with %v", g.after, g.err)
				}
			})
		})
	}
}
