package embedded_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestStrangersAreCut: who connects and says nothing is not waited for.
func TestStrangersAreCut(t *testing.T) {
	c := config(t)
	c.Listen = "127.0.0.1:0"
	srv := open(t, c)
	conn, err := net.Dial("tcp", strings.TrimPrefix(srv.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(conn)
	if err != nil || !strings.Contains(string(said), "-ERR 'Authentication Timeout'") {
		t.Errorf("said %q, %v", said, err)
	}
}
