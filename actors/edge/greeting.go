package edge

import (
	"bufio"
	"net"
	"time"
)

// greeting is what a client said before a backend is chosen.
type greeting struct {
	hello      handshake
	helloFrame frame
	start      *loginStart // nil when the client only asked for the status
	startFrame frame
}

// greet reads handshake and Login Start from r, which is over conn, until deadline,
// which is already set on conn. Pings of every kind are answered with what status
// returns; their greeting has no start.
func greet(conn net.Conn, r *bufio.Reader, deadline time.Time, legacyWait time.Duration, status func() Status) (greeting, error) {
	wait := min(legacyWait, time.Until(deadline))
	kind, err := detectLegacy(r, wait, conn.SetReadDeadline)
	if err != nil {
		return greeting{}, err
	}
	if kind != notLegacy {
		_, err := conn.Write(appendLegacyStatus(nil, kind, status()))
		return greeting{}, err
	}
	if err := conn.SetReadDeadline(deadline); err != nil {
		return greeting{}, err
	}
	var g greeting
	if g.helloFrame, err = readFrame(r, 0); err != nil {
		return greeting{}, err
	}
	if g.hello, err = parseHandshake(g.helloFrame.payload()); err != nil {
		return greeting{}, err
	}
	if g.hello.intent == intentStatus {
		return greeting{}, answerStatus(conn, r, g.hello.protocol, status)
	}
	return g, g.readStart(r)
}

func (g *greeting) readStart(r *bufio.Reader) error {
	var err error
	if g.startFrame, err = readFrame(r, 0); err != nil {
		return err
	}
	start, err := parseLoginStart(g.startFrame.payload(), g.hello.protocol)
	g.start = &start
	return err
}

// answerStatus answers one status request and one ping, either of which a client may
// leave out.
func answerStatus(conn net.Conn, r *bufio.Reader, protocol int32, status func() Status) error {
	for range 2 {
		f, err := readFrame(r, 1)
		if err != nil {
			return err
		}
		answer, err := statusAnswer(f, protocol, status)
		if err != nil {
			return err
		}
		if _, err := conn.Write(answer); err != nil || f.id() == 1 {
			return err
		}
	}
	return nil
}

func statusAnswer(f frame, protocol int32, status func() Status) ([]byte, error) {
	if f.id() == 1 {
		return appendPong(nil, f.payload())
	}
	return appendStatus(nil, status(), protocol)
}
