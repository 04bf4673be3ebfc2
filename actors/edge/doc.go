// Package edge is the Minecraft Java front door of a network.
//
// A Server accepts clients, reads no more than the handshake and the Login Start
// of each, asks its Router where that login goes, dials the answer and then
// splices bytes between the two sockets without looking at them again: from there
// on compression and encryption belong to client and backend.
//
// The edge authenticates nobody. What a client says (name, UUID, token in the
// host name) may choose a backend and never grants anything.
//
// The package has two halves. Wire parsing (varint.go, frame.go, handshake.go,
// login.go, legacy.go, status.go, host.go, identity.go, proxyproto.go) is made of
// functions of bytes. The shell (server.go, conn.go, route.go, splice.go, gate.go)
// owns sockets, deadlines and goroutines.
package edge
