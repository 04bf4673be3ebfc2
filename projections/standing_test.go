package projections

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/landfall/landfall/events"
)

// TestAPlayerPutAwayAndTakenOutAgain folds on as if nothing had happened, wherever that is done and
// although the standing was written down meanwhile.
func TestAPlayerPutAwayAndTakenOutAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole, paged := NewPagedJourneys(1, 0), NewPagedJourneys(1, 0)
		for _, e := range drawHistory(t, events.Transfers) {
			want := codeOf(whole.Apply(e, e.Stored))
			if got := codeOf(paged.Apply(e, e.Stored)); got != want {
				t.Fatalf("sequence %d: %s, want %s", e.Seq, got, want)
			}
			player, _, err := events.ParseTransferKey(e.Key)
			if err != nil || rapid.IntRange(0, 2).Draw(t, "page") > 0 {
				continue
			}
			raw, err := json.Marshal(paged.Standing(player))
			if err != nil {
				t.Fatal(err)
			}
			paged.Drop(player)
			if paged.Holds(player) {
				t.Fatal("a player was dropped and is held")
			}
			var s Standing
			if err := json.Unmarshal(raw, &s); err != nil {
				t.Fatal(err)
			}
			paged.Put(player, s)
		}
		for id := range whole.players {
			want, err := json.Marshal(whole.Standing(id))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := json.Marshal(paged.Standing(id)); err != nil || string(got) != string(want) {
				t.Fatalf("player %s: %v\n%s\nwant\n%s", id.Short(), err, got, want)
			}
		}
		if len(paged.active) != len(whole.active) || len(paged.byID) != len(whole.byID) {
			t.Fatalf("%d active and %d owners, want %d and %d", len(paged.active), len(paged.byID), len(whole.active), len(whole.byID))
		}
	})
}
