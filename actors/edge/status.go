package edge

import "encoding/json"

type statusJSON struct {
	Version     versionJSON       `json:"version"`
	Players     playersJSON       `json:"players"`
	Description map[string]string `json:"description"`
	Favicon     string            `json:"favicon,omitempty"`
}

type versionJSON struct {
	Name     string `json:"name"`
	Protocol int32  `json:"protocol"`
}

type playersJSON struct {
	Max    int `json:"max"`
	Online int `json:"online"`
}

// appendStatus appends the status response for a client of that protocol.
func appendStatus(dst []byte, s Status, clientProtocol int32) ([]byte, error) {
	body, err := json.Marshal(statusJSON{
		Version:     versionJSON{Name: s.Version, Protocol: or(s.Protocol, clientProtocol)},
		Players:     playersJSON{Max: s.Max, Online: s.Online},
		Description: map[string]string{"text": s.Description},
		Favicon:     s.Favicon,
	})
	if err != nil {
		return dst, err
	}
	return appendFrame(dst, 0, appendString(nil, string(body))), nil
}

// appendPong appends the answer to a ping: its eight bytes.
func appendPong(dst, payload []byte) ([]byte, error) {
	if len(payload) != 8 {
		return dst, malformed("ping has %d bytes, expected 8", len(payload))
	}
	return appendFrame(dst, 1, payload), nil
}
