package vintage

import (
	"net"
	"strconv"
	"strings"
)

// Ids stand in a field of their own, another one in each direction.
const (
	clientID = 1
	serverID = 90
)

// What a client says, by the field of its body and by its id.
const (
	bodyIdentification, idIdentification     = 2, 1
	bodyServerQuery, idServerQuery           = 10, 15
	bodyLoginTokenQuery, idLoginTokenQuery   = 33, 33
	bodyRedirect, idRedirect                 = 29, 29
	bodyDisconnect, idDisconnect             = 8, 9
	bodyQueryAnswer, idQueryAnswer           = 28, 28
	bodyServerIdentity, idServerIdentity     = 1, 1
	identityName, identityUID                = 2, 6
	answerName, answerMOTD, answerMode       = 1, 2, 5
	answerPlayers, answerMax, answerPassword = 3, 4, 6
	answerVersion                            = 7
)

// Kind is what a packet is, as far as a proxy cares.
type Kind uint8

// Kinds of packets.
const (
	Other Kind = iota
	LoginTokenQuery
	ServerQuery
	Identification
	ServerIdentification // the server has let the player in
	Disconnect
	Redirect
	QueryAnswer
)

func (k Kind) String() string {
	return [...]string{"other", "login token query", "server query", "identification", "server identification", "disconnect", "redirect", "query answer"}[k]
}

// maxText bounds names and ids: what is longer is nobody's.
const maxText = 256

// Client is what a client's packet says.
type Client struct {
	Kind Kind
	Name string // of an Identification
	UID  string // the account, in the server's own spelling
}

// ParseClient reads the payload of a client's frame. A packet is named by its body if one is known, else by
// its id: clients write the body, the id, or both.
func ParseClient(payload []byte) (Client, error) {
	var c Client
	id, found := uint64(0), false
	var inner error
	err := fieldsOf(payload, func(f field) {
		switch {
		case f.number == clientID && f.kind == varintType:
			id = f.value
		case found || f.kind != bytesType:
		case f.number == bodyIdentification:
			found, c.Kind = true, Identification
			inner = c.identity(f.data)
		case f.number == bodyServerQuery:
			found, c.Kind = true, ServerQuery
		case f.number == bodyLoginTokenQuery:
			found, c.Kind = true, LoginTokenQuery
		}
	})
	switch {
	case err != nil:
		return Client{}, err
	case inner != nil:
		return Client{}, inner
	case found:
	case id == idServerQuery:
		c.Kind = ServerQuery
	case id == idLoginTokenQuery:
		c.Kind = LoginTokenQuery
	}
	return c, nil
}

func (c *Client) identity(body []byte) error {
	err := fieldsOf(body, func(f field) {
		switch {
		case f.kind != bytesType || len(f.data) > maxText:
		case f.number == identityName:
			c.Name = string(f.data)
		case f.number == identityUID:
			c.UID = string(f.data)
		}
	})
	if err == nil && (c.UID == "" || strings.ToValidUTF8(c.UID+c.Name, "") != c.UID+c.Name) {
		err = errProto
	}
	return err
}

// ServerKind names a server's packet from the first bytes of its payload.
func ServerKind(first []byte) Kind {
	f, _, err := nextFieldHead(first)
	if err != nil {
		return Other
	}
	if f.number == serverID && f.kind == varintType {
		return map[uint64]Kind{
			idServerIdentity: ServerIdentification, idDisconnect: Disconnect, idRedirect: Redirect, idQueryAnswer: QueryAnswer,
		}[f.value]
	}
	return map[int]Kind{
		bodyServerIdentity: ServerIdentification, bodyDisconnect: Disconnect, bodyRedirect: Redirect, bodyQueryAnswer: QueryAnswer,
	}[f.number]
}

// nextFieldHead is nextField of a message that may be cut inside the field's bytes.
func nextFieldHead(b []byte) (field, []byte, error) {
	f, rest, err := nextField(b)
	if err == nil {
		return f, rest, nil
	}
	for n := 1; n < len(b) && n <= 5; n++ { // the tag alone
		if b[n-1] < 0x80 {
			whole, _, err := nextField(append(b[:n:n], 0))
			return field{number: whole.number, kind: whole.kind}, nil, err
		}
	}
	return field{}, nil, errProto
}

// Answer is what a server list shows.
type Answer struct {
	Name, MOTD   string
	Players, Max int
	Mode         string
	Password     bool
	Version      string
}

// Server is what a server's packet says.
type Server struct {
	Kind   Kind
	Answer Answer // of a QueryAnswer
	Name   string // of a Redirect: the display name
	Host   string // of a Redirect: where to dial
	Reason string // of a Disconnect
}

// ParseServer reads the payload of a server's frame.
func ParseServer(payload []byte) (Server, error) {
	var s Server
	s.Kind = ServerKind(payload)
	var inner error
	err := fieldsOf(payload, func(f field) {
		if f.kind != bytesType {
			return
		}
		switch {
		case s.Kind == QueryAnswer && f.number == bodyQueryAnswer:
			inner = fieldsOf(f.data, s.Answer.take)
		case s.Kind == Redirect && f.number == bodyRedirect:
			texts := map[int]*string{1: &s.Name, 2: &s.Host}
			inner = fieldsOf(f.data, func(f field) { takeText(texts, f) })
		case s.Kind == Disconnect && f.number == bodyDisconnect:
			texts := map[int]*string{1: &s.Reason}
			inner = fieldsOf(f.data, func(f field) { takeText(texts, f) })
		}
	})
	if err == nil {
		err = inner
	}
	return s, err
}

func takeText(texts map[int]*string, f field) {
	if to := texts[f.number]; to != nil && f.kind == bytesType {
		*to = string(f.data)
	}
}

func (a *Answer) take(f field) {
	takeText(map[int]*string{answerName: &a.Name, answerMOTD: &a.MOTD, answerMode: &a.Mode, answerVersion: &a.Version}, f)
	if f.kind != varintType || f.value > 1<<30 {
		return
	}
	switch f.number {
	case answerPlayers:
		a.Players = int(f.value)
	case answerMax:
		a.Max = int(f.value)
	case answerPassword:
		a.Password = f.value == 1
	}
}

// AppendRedirect appends the frame that lets a client dial host, which is "host" or "host:port". The name is
// shown to the player, if at all.
func AppendRedirect(dst []byte, name, host string) []byte {
	body := appendBytes(appendBytes(nil, 1, []byte(name)), 2, []byte(host))
	return appendFrame(dst, appendBytes(appendVarint(nil, serverID, idRedirect), bodyRedirect, body))
}

// AppendDisconnect appends the frame that ends a connection with a text.
func AppendDisconnect(dst []byte, reason string) []byte {
	return appendFrame(dst, appendBytes(appendVarint(nil, serverID, idDisconnect), bodyDisconnect, appendBytes(nil, 1, []byte(reason))))
}

// AppendQueryAnswer appends the frame that answers a ServerQuery.
func AppendQueryAnswer(dst []byte, a Answer) []byte {
	body := appendText(appendText(nil, answerName, a.Name), answerMOTD, a.MOTD)
	body = appendNumber(appendNumber(body, answerPlayers, a.Players), answerMax, a.Max)
	body = appendText(body, answerMode, a.Mode)
	if a.Password {
		body = appendNumber(body, answerPassword, 1)
	}
	body = appendText(body, answerVersion, a.Version)
	return appendFrame(dst, appendBytes(appendVarint(nil, serverID, idQueryAnswer), bodyQueryAnswer, body))
}

// AppendServerQuery appends the frame by which a client asks what a server list shows.
func AppendServerQuery(dst []byte) []byte {
	return appendFrame(dst, appendVarint(nil, clientID, idServerQuery))
}

// AppendLoginTokenQuery appends a client's first frame. It says nothing of the client.
func AppendLoginTokenQuery(dst []byte) []byte {
	return appendFrame(dst, appendBytes(nil, bodyLoginTokenQuery, nil))
}

// AppendIdentification appends the frame by which a client says who it is.
func AppendIdentification(dst []byte, name, uid string) []byte {
	body := appendBytes(appendBytes(nil, identityName, []byte(name)), identityUID, []byte(uid))
	return appendFrame(dst, appendBytes(nil, bodyIdentification, body))
}

// AppendServerIdentification appends the frame by which a server lets a player in, without what else it says.
func AppendServerIdentification(dst []byte) []byte {
	return appendFrame(dst, appendBytes(nil, bodyServerIdentity, nil))
}

// HostOf is how a redirect writes an address: the default port is left out.
func HostOf(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port != strconv.Itoa(DefaultPort) {
		return address
	}
	return host
}

// AddressOf is the reverse of HostOf.
func AddressOf(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(DefaultPort))
}
