package events

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
)

// Checkpoint seals a run of the facts of transfers. Each names the hash of the one before, so
// that a lost end, a removed middle or a changed byte shows, as long as a later checkpoint is
// known to somebody.
type Checkpoint struct {
	Number uint64 `msgpack:"number" json:"number"` // counted from 1; its key
	From   uint64 `msgpack:"from" json:"from"`     // first sequence it seals: the one behind the previous checkpoint's last
	To     uint64 `msgpack:"to" json:"to"`         // last one
	Count  uint64 `msgpack:"count" json:"count"`   // how many records stood there
	Hash   string `msgpack:"hash" json:"hash"`     // see Segment
	Prev   string `msgpack:"prev" json:"prev"`     // hash of the previous checkpoint, empty in the first
}

func (*Checkpoint) fact() {}

// Follows tells that a checkpoint is the next one behind before.
func (c Checkpoint) Follows(before Checkpoint) bool {
	return c.Number == before.Number+1 && c.Prev == before.Hash && c.From == before.To+1
}

// CheckpointKey is the key of a checkpoint.
func CheckpointKey(number uint64) string { return strconv.FormatUint(number, 10) }

// ParseCheckpointKey is the reverse of CheckpointKey, and as strict as ParseTransferKey.
func ParseCheckpointKey(key string) (uint64, error) {
	n, err := strconv.ParseUint(key, 10, 64)
	if err != nil || n == 0 || CheckpointKey(n) != key {
		return 0, fmt.Errorf("checkpoint key %q: want a number from 1 on", key)
	}
	return n, nil
}

// Segment works out the hash of a run of records: SHA-256 over the hash of the checkpoint
// before (as text, behind its length), and of each record its sequence (8 bytes, big-endian),
// its canonical bytes (see Canonical) and its signature header, both behind their lengths as a
// big-endian uint32.
type Segment struct {
	sum   hash.Hash
	count uint64
}

// NewSegment begins behind the checkpoint with this hash, empty for the first one.
func NewSegment(prev string) *Segment {
	s := &Segment{sum: sha256.New()}
	s.sum.Write(field(nil, prev))
	return s
}

// Add takes in the next record.
func (s *Segment) Add(r Record) {
	s.count++
	canonical := Canonical(r.Bucket.Subject(r.Key), r.Header, r.Body)
	out := make([]byte, 0, len(canonical)+128)
	out = binary.BigEndian.AppendUint64(out, r.Seq)
	out = field(out, canonical)
	out = field(out, r.Header[HeaderSig])
	s.sum.Write(out)
}

// Count is how many records were taken in.
func (s *Segment) Count() uint64 { return s.count }

// Hash is that of all that was taken in, in lower-case hex.
func (s *Segment) Hash() string { return hex.EncodeToString(s.sum.Sum(nil)) }
