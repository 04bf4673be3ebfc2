package network

import "fmt"

// The codes of Error: stable words for machines. The text beside them is for people and may change.
const (
	CodeMissing        = "CONFIG_MISSING"      // no such file
	CodeSyntax         = "CONFIG_SYNTAX"       // not YAML, or YAML this file does not use
	CodeUnknownKey     = "UNKNOWN_KEY"         // a key nobody reads
	CodeDuplicateKey   = "DUPLICATE_KEY"       // a key given twice
	CodeWrongType      = "WRONG_TYPE"          // text where a number belongs, and the like
	CodeOutOfBounds    = "OUT_OF_BOUNDS"       // right type, value not allowed
	CodeRequired       = "REQUIRED"            // a key that an enabled network cannot do without
	CodeContradiction  = "CONTRADICTION"       // two keys that cannot both hold
	CodeNotPushable    = "NOT_PUSHABLE"        // a key that no running host can take from others
	CodeNotYet         = "NOT_IN_THIS_VERSION" // allowed by the file, not carried out yet
	CodeTLSRequired    = "TLS_REQUIRED"        // an open listener without a certificate
	CodeBadCertificate = "BAD_CERTIFICATE"     // a certificate that nobody could show or believe
	CodeBadKey         = "BAD_KEY"             // a key of a host or the operator that cannot be used
	CodeNoID           = "NO_ID"               // nobody said who this host is
	CodeBadID          = "BAD_ID"              // an id of the wrong form
	CodeIDConflict     = "ID_CONFLICT"         // two sources name different hosts
	CodeUnknownHost    = "UNKNOWN_HOST"        // an id that the file does not list
	CodeStoreAlone     = "STORE_ALONE"         // a store of its own for a process that needs others
	CodeStoreOpen      = "STORE_OPEN"          // a store on other machines that lets in anybody
	CodeStoreLazy      = "STORE_LAZY"          // a store that loses in a power cut what it acknowledged
	CodeSecretMissing  = "SECRET_MISSING"
	CodeSecretBad      = "SECRET_NOT_BASE64"
	CodeSecretShort    = "SECRET_SHORT"
	CodeSecretSample   = "SECRET_PLACEHOLDER"
)

// Error says in one line what is wrong with the configuration, where, and what would be right.
type Error struct {
	File string // as given to Load; empty when the fault is not in the file
	Line int    // 1-based; 0 when the fault has no line
	Key  string // dotted path, such as hosts.survival-1.rcon.address
	Msg  string // what is wrong and what is allowed
	Code string

	cause error
}

// Unwrap is what the system said, when the fault is the system's: a missing file is fs.ErrNotExist.
func (e *Error) Unwrap() error { return e.cause }

// Error is `FILE:LINE: KEY: MSG`, without the parts that are empty.
func (e *Error) Error() string {
	text := e.Msg
	if e.Key != "" {
		text = e.Key + ": " + text
	}
	switch {
	case e.File != "" && e.Line > 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, text)
	case e.File != "":
		return e.File + ": " + text
	default:
		return text
	}
}

// refusal is an Error before it knows its place: what a check of one value returns.
type refusal struct{ code, problem, allowed string }

func (r refusal) message() string {
	if r.allowed == "" {
		return r.problem
	}
	return r.problem + "; allowed: " + r.allowed
}
