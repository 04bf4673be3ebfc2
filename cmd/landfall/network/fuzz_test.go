package network

import (
	"errors"
	"testing"

	"github.com/landfall/landfall/docs"
)

// FuzzParse: whatever stands in the file, it is a network or an *Error, never a panic or another error.
func FuzzParse(f *testing.F) {
	f.Add(docs.ExampleNetwork)
	f.Add([]byte(small))
	for _, c := range bad {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := Parse("network.yml", data)
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%T: %v", err, err)
		}
	})
}
