package events

import "testing"

func TestCheckpointKeys(t *testing.T) {
	for _, n := range []uint64{1, 9, 10, 1 << 40} {
		if got, err := ParseCheckpointKey(CheckpointKey(n)); err != nil || got != n {
			t.Errorf("%d: %d, %v", n, got, err)
		}
	}
	for _, key := range []string{"", "0", "01", "+1", "-1", "1 ", "a", "18446744073709551616"} {
		if n, err := ParseCheckpointKey(key); err == nil {
			t.Errorf("%q is %d", key, n)
		}
	}
}

// TestSegmentSeesEveryChange: order, sequence, headers that are signed, body, signature, and
// what came before.
func TestSegmentSeesEveryChange(t *testing.T) {
	first, second := segmentRecord(7, "a"), segmentRecord(8, "b")
	hash := func(prev string, records ...Record) string {
		s := NewSegment(prev)
		for _, r := range records {
			s.Add(r)
		}
		if s.Count() != uint64(len(records)) {
			t.Errorf("counted %d of %d", s.Count(), len(records))
		}
		return s.Hash()
	}
	whole := hash("p", first, second)
	if whole != hash("p", first, second) || len(whole) != 64 {
		t.Fatalf("the hash of the same records: %q", whole)
	}
	later, forged, unsigned := second, segmentRecord(8, "c"), segmentRecord(8, "b")
	later.Seq = 9
	unsigned.Header[HeaderSig] = "v1;kid=x;00"
	retyped := segmentRecord(8, "b")
	retyped.Header[HeaderType] = "landfall.transfer.failed.v1"
	for name, got := range map[string]string{
		"another beginning": hash("q", first, second), "another order": hash("p", second, first), "one less": hash("p", first),
		"another sequence": hash("p", first, later), "another body": hash("p", first, forged),
		"another signature": hash("p", first, unsigned), "another type": hash("p", first, retyped),
	} {
		if got == whole {
			t.Errorf("%s has the same hash", name)
		}
	}
}

func segmentRecord(seq uint64, body string) Record {
	return Record{
		Bucket: Transfers, Key: samplePlayer + "." + sampleTransfer, Seq: seq, Body: []byte(body),
		Header: Header{HeaderType: "landfall.transfer.claimed.v1", HeaderSig: "v1;kid=x;ff"},
	}
}
