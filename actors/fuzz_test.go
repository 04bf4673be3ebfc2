package actors

import "testing"

// FuzzParseMessages: whatever stands in a file of texts, it is texts or an error, and a text can be
// shown to a player, whatever it names.
func FuzzParseMessages(f *testing.F) {
	f.Add(shippedMessages)
	f.Add([]byte("transfer.arrived: hello\ntransfer.position: \"number {positon} of {total\"\n"))
	f.Add([]byte("- x"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		m, err := ParseMessages(data)
		if err != nil {
			return
		}
		for key := range ShippedMessages().With(m) {
			_ = m.Text(key, nil)
		}
	})
}
