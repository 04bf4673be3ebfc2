package events

import "testing"

func TestCheckSchema(t *testing.T) {
	for _, c := range []struct {
		peer, oldest, newest int
		want                 string
	}{
		{1, 1, 1, ""}, {2, 2, 3, ""}, {3, 2, 3, ""},
		{0, 1, 1, "SCHEMA_RANGE: it writes wire version 0, this build reads 1"},
		{2, 1, 1, "SCHEMA_RANGE: it writes wire version 2, this build reads 1"},
		{1, 2, 3, "SCHEMA_RANGE: it writes wire version 1, this build reads 2 to 3"},
		{4, 2, 3, "SCHEMA_RANGE: it writes wire version 4, this build reads 2 to 3"},
		{-1, 1, 3, "SCHEMA_RANGE: it writes wire version -1, this build reads 1 to 3"},
	} {
		got := ""
		if refusal := checkSchema(c.peer, c.oldest, c.newest); refusal != nil {
			got = refusal.Error()
		}
		if got != c.want {
			t.Errorf("%d in %d to %d: %q, want %q", c.peer, c.oldest, c.newest, got, c.want)
		}
	}
	if refusal := CheckSchema(SchemaVersion); refusal != nil {
		t.Errorf("this build does not read itself: %v", refusal)
	}
	if CheckSchema(SchemaVersion+1) == nil || CheckSchema(SchemaOldest-1) == nil {
		t.Error("the range of this build has no ends")
	}
}
