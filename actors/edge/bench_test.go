//go:build unix

package edge

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// BenchmarkSplice streams from a backend to a player, directly and through the edge in
// the same run. Both ends live in this process, so the CPU of a direct stream is that of
// the ends alone, and what the edge costs is the difference.
//
//	direct-MB/s, spliced-MB/s    throughput
//	spliced/direct               their ratio
//	direct-cpu-ms/GiB            both ends
//	spliced-cpu-ms/GiB           both ends and the edge
//	edge-cpu-ms/GiB              the difference
func BenchmarkSplice(b *testing.B) {
	const chunk = 64 << 20
	source := newBackend(b)
	s := run(b, Config{Router: always(source.to())})

	through := connect(b, s)
	sent := through.login(b, "a", intentLogin)
	spliced := source.accept()
	spliced.got(b, sent)
	near, err := net.Dial("tcp", source.listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer near.Close()
	direct := source.accept()
	for _, c := range []net.Conn{through, spliced, near, direct} {
		c.SetDeadline(time.Time{})
	}

	var onDirect, onSpliced cost
	for b.Loop() {
		onDirect.add(stream(b, direct, near.(*net.TCPConn), chunk))
		onSpliced.add(stream(b, spliced, through.TCPConn, chunk))
	}
	gib := float64(b.N) * chunk / (1 << 30)
	mb := float64(b.N) * chunk / 1e6
	b.ReportMetric(mb/onDirect.wall.Seconds(), "direct-MB/s")
	b.ReportMetric(mb/onSpliced.wall.Seconds(), "spliced-MB/s")
	b.ReportMetric(onDirect.wall.Seconds()/onSpliced.wall.Seconds(), "spliced/direct")
	b.ReportMetric(onDirect.cpu.Seconds()*1e3/gib, "direct-cpu-ms/GiB")
	b.ReportMetric(onSpliced.cpu.Seconds()*1e3/gib, "spliced-cpu-ms/GiB")
	b.ReportMetric((onSpliced.cpu-onDirect.cpu).Seconds()*1e3/gib, "edge-cpu-ms/GiB")
	b.ReportMetric(0, "ns/op") // one op is two streams: it says nothing
}

// cost is what streaming took.
type cost struct{ wall, cpu time.Duration }

func (c *cost) add(o cost) { c.wall += o.wall; c.cpu += o.cpu }

// stream sends n bytes from one socket and reads them all from the other.
func stream(b *testing.B, from *player, to *net.TCPConn, n int64) cost {
	b.Helper()
	cpu, began := cpuTime(b), time.Now()
	written := make(chan error, 1)
	go func() {
		block := make([]byte, 256<<10)
		for left := n; left > 0; left -= int64(len(block)) {
			if _, err := from.Write(block); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	block := make([]byte, 256<<10)
	for left := n; left > 0; {
		k, err := to.Read(block[:min(left, int64(len(block)))])
		if err != nil {
			b.Fatalf("%d bytes missing: %v", left, err)
		}
		left -= int64(k)
	}
	if err := <-written; err != nil {
		b.Fatal(err)
	}
	return cost{wall: time.Since(began), cpu: cpuTime(b) - cpu}
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkLogin is one whole login: connect, greeting, route, dial, first byte through
// to the backend, end.
func BenchmarkLogin(b *testing.B) {
	source := newBackend(b)
	router := always(source.to())
	s := run(b, Config{Router: router})
	for b.Loop() {
		p := connect(b, s)
		sent := p.login(b, "play.example.test", intentLogin)
		server := source.accept()
		server.got(b, sent)
		p.Close()
		if _, err := io.ReadAll(server.r); err != nil {
			b.Fatal(err)
		}
		server.Close()
		<-router.arrivals
		<-router.opened
		<-router.closed
	}
}

// BenchmarkGreeting is the parsing alone.
func BenchmarkGreeting(b *testing.B) {
	all := openings(b)
	o := all[len(all)-1]
	b.ReportAllocs()
	for b.Loop() {
		r := reader(o.bytes)
		var g greeting
		var err error
		if g.helloFrame, err = readFrame(r, 0); err != nil {
			b.Fatal(err)
		}
		if g.hello, err = parseHandshake(g.helloFrame.payload()); err != nil {
			b.Fatal(err)
		}
		if err := g.readStart(r); err != nil {
			b.Fatal(err)
		}
	}
}
