// Package docs carries the pages that the binary itself needs, so that what an operator reads and what
// the program was built with are the same bytes.
package docs

import _ "embed"

// ExampleNetwork is the annotated network.yml.
//
//go:embed network.yml
var ExampleNetwork []byte
