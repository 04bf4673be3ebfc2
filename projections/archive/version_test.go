package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// fingerprints are what each version of the folding makes of the tables and of one history.
// A change here without a new version would write two kinds of rows into one file.
var fingerprints = map[int]struct{ schema, rows string }{
	1: {"d9a8dd7d92b540f8", "808e1fe146486c54"},
}

func TestAVersionIsOneKindOfRows(t *testing.T) {
	sum := sha256.Sum256([]byte(Schema()))
	schema := hex.EncodeToString(sum[:8])
	want := fingerprints[Current.Version]
	if schema != want.schema {
		t.Errorf("the schema of version %d is %s, was %s: give it a new version", Current.Version, schema, want.schema)
	}
	c := newChronicle(t, 8)
	c.run(500)
	path := fresh(t, Current)
	if err := project(t, path, c.log, Config{Log: still{c.log}, Once: true}); err != nil {
		t.Fatal(err)
	}
	if rows := digest(t, path)[:16]; rows != want.rows {
		t.Errorf("the rows of version %d are %s, were %s: give it a new version", Current.Version, rows, want.rows)
	}
}
