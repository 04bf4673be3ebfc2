package edge

import (
	"context"
	"net/netip"
	"time"
)

// Router decides where an arriving login goes. All methods are called from many
// goroutines at once, one per connection.
type Router interface {
	// Route says where the login goes. It may block, for instance while a token
	// is not known yet; ctx ends when the client leaves, the edge stops, the
	// connection is cut by Disconnect, or Config.RouteTimeout is over, and the
	// answer is then ignored. When the previous answer could not be dialled, or
	// accepted and did not answer the login, Route is called again for the same connection with that server appended
	// to Arrival.Failed: the next attempt in the held login.
	Route(ctx context.Context, a Arrival) Decision
	// Status is what the server list shows. It must not block.
	Status() Status
	// Opened says that a backend accepted the connection, which may still come to
	// nothing: then Closed follows, and Route again. It is called before
	// the backend sees the first byte, so before the backend can announce the
	// join, and must not block.
	Opened(c Connection)
	// Closed says that a connection given to Opened has ended, with one of the
	// Closed… reasons. It must not block. Every Opened is followed by exactly one
	// Closed, before Server.Run returns.
	Closed(c Connection, reason string)
}

// Tracer is the Router of games whose clients say late, or never, who they are. Route is asked as soon as
// a client's first bytes are there.
type Tracer interface {
	Router
	// Recognize hears who a client is, before its server does, and says whether it is to dial again. It
	// may block for a moment.
	Recognize(ctx context.Context, a Arrival, server string) Again
	// LetIn says that the server has let the player of a connection in. It must not block.
	LetIn(c Connection)
	// Gone says that a client has left for which Route was asked, whether it was recognized or not. It
	// must not block, and comes after the connection's Closed.
	Gone(connID uint64)
}

// Again lets a client dial again; a zero one lets it stay.
type Again struct {
	// Name is what the player may be shown. It holds the announcement of a marker.
	Name string
	// Address is where it is to dial; "": the edge's own, Config.RedirectAddress.
	Address string
}

// Arrival is one login as the client described it: a claim, not an identity.
type Arrival struct {
	// ConnID names the connection, uniquely in this process.
	ConnID uint64
	// Name is 1 to 16 of [A-Za-z0-9_], in the client's own case.
	Name string
	// ClaimedUUID is what Login Start carried; HasUUID is false for clients up
	// to 1.18.2 and for those that chose to send none.
	ClaimedUUID [16]byte
	HasUUID     bool
	// Player is the id the backend will most likely give: the v3 UUID of the
	// name in an offline network, the claimed one in an online network. It is
	// zero in an online network when the client sent none; then only the
	// lower-cased Name identifies the player.
	Player [16]byte
	// Protocol is the client's protocol version; snapshots are 0x40000000+n.
	Protocol int32
	// Host is the address the player typed (or was transferred to), cleaned for
	// look-up. It holds the token, if any: never log it when TokenLabel is set.
	Host string
	// TokenLabel is the first label of Host, r-<32 hex>-<n>, or "".
	TokenLabel string
	// Intent is 2 for a login, 3 for one that follows a transfer.
	Intent int
	// Remote is the client's address, from the PROXY header of a trusted peer
	// where there was one.
	Remote netip.AddrPort
	// Game is the edge's, and Marker the id that a client of it sent before anything else; zero: none.
	// Their clients give no host, no UUID and no intent; NativeID is who they say they are in the game's
	// own spelling, "" as long as they have not said so.
	Game     Game
	Marker   [16]byte
	NativeID string
	// StandsFor is that of the edge.
	StandsFor string
	// Failed lists, in order, the server ids that could not be dialled, or did not
	// answer, in this login.
	Failed []string
}

// Decision is the answer to an Arrival: a server to dial, or a refusal.
type Decision struct {
	// Server is the id of the chosen backend; "" refuses the login.
	Server string
	// Address is the host:port dialled.
	Address string
	// ProxyV2 sends a PROXY v2 header first. A backend that expects none dies
	// on it, one that expects it accepts nothing else.
	ProxyV2 bool
	// RewriteIntent turns a handshake intent of 3 into 2, for backends that do
	// not accept transfers.
	RewriteIntent bool
	// Refuse is the text the player reads when Server is "".
	Refuse string
	// Code is the stable name of the refusal, for logs.
	Code string
}

// Connection is a login that was spliced to a backend.
type Connection struct {
	ConnID   uint64
	Name     string
	Player   [16]byte
	Server   string
	Protocol int32
	Host     string
	Remote   netip.AddrPort
	// Dialled is how long the backend took to accept the connection.
	Dialled time.Duration
	// Game and NativeID are those of the Arrival.
	Game     Game
	NativeID string
}

// Why a spliced connection ended.
const (
	ClosedByClient  = "CLIENT_CLOSED"
	ClosedSilent    = "BACKEND_SILENT" // it accepted, and did not answer the login
	ClosedByBackend = "BACKEND_CLOSED"
	ClosedByUs      = "DISCONNECTED"
	ClosedByStop    = "EDGE_STOPPING"
)

// Status is the server list entry.
type Status struct {
	// Description is plain text; section-sign colour codes work.
	Description string
	// Version is the text shown to clients that do not match Protocol.
	Version string
	// Protocol is the version advertised; 0 repeats the client's own, so the
	// entry always looks joinable.
	Protocol int32
	Online   int
	Max      int
	// Favicon is "data:image/png;base64,…" of a 64×64 PNG, or "".
	Favicon string
}
