package edge

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"
)

// endpoints are the two ends of a client's connection as the outermost proxy saw
// them.
type endpoints struct{ source, destination netip.AddrPort }

// readProxyHeader consumes a PROXY v1 or v2 header from r. It returns false, and
// consumes nothing, when there is none, and false when the header says that the
// proxy speaks for itself (LOCAL, UNKNOWN). No header is a legal frame, so the two
// cannot be confused.
func readProxyHeader(r *bufio.Reader) (endpoints, bool, error) {
	gatherV1(r)
	h, err := proxyproto.Read(r)
	if errors.Is(err, proxyproto.ErrNoProxyProtocol) {
		return endpoints{}, false, nil
	}
	if err != nil {
		return endpoints{}, false, proxyError(err)
	}
	source, ok1 := tcpAddrPort(h.SourceAddr)
	destination, ok2 := tcpAddrPort(h.DestinationAddr)
	if h.Command.IsLocal() || !ok1 || !ok2 {
		return endpoints{}, false, nil
	}
	return endpoints{source: source, destination: destination}, true, nil
}

// Bounds of a PROXY v1 header.
const (
	v1Prefix = "PROXY "
	v1Length = 107
)

// gatherV1 waits until all of a v1 header is in r: the library takes one that comes in pieces for a bad one. An error of r
// meets the library, too.
func gatherV1(r *bufio.Reader) {
	for n := 1; n <= v1Length; n++ {
		b, err := r.Peek(n)
		if err != nil || b[n-1] == '\n' || n <= len(v1Prefix) && b[n-1] != v1Prefix[n-1] {
			return
		}
	}
}

// proxyError keeps time-outs and ends of the stream apart from bad headers.
func proxyError(err error) error {
	if _, network := errors.AsType[net.Error](err); network {
		return fmt.Errorf("read PROXY header: %w", err)
	}
	return malformed("PROXY header: %v", err)
}

func tcpAddrPort(a net.Addr) (netip.AddrPort, bool) {
	t, ok := a.(*net.TCPAddr)
	if !ok || t == nil {
		return netip.AddrPort{}, false
	}
	return unmapped(t.AddrPort()), true
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

const proxyV2Signature = "\r\n\r\n\x00\r\nQUIT\n"

// AppendProxyV2 appends the PROXY v2 header for a connection from source to
// destination. When only one of them is IPv4 both are written as IPv6, the IPv4 one
// mapped. Without two valid addresses it is a LOCAL header, which a backend that
// demands PROXY accepts from probes.
func AppendProxyV2(dst []byte, source, destination netip.AddrPort) []byte {
	dst = append(dst, proxyV2Signature...)
	s, d := source.Addr().Unmap(), destination.Addr().Unmap()
	switch {
	case !s.IsValid() || !d.IsValid():
		return append(dst, 0x20, 0x00, 0, 0)
	case s.Is4() && d.Is4():
		dst = append(dst, 0x21, 0x11, 0, 12)
		dst = append(append(dst, s.AsSlice()...), d.AsSlice()...)
	default:
		dst = append(dst, 0x21, 0x21, 0, 36)
		s16, d16 := s.As16(), d.As16()
		dst = append(append(dst, s16[:]...), d16[:]...)
	}
	dst = binary.BigEndian.AppendUint16(dst, source.Port())
	return binary.BigEndian.AppendUint16(dst, destination.Port())
}
