package projections

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/landfall/landfall/events"
)

// TestCase115_GarbageChangesNothing (P12): what lies under other keys of a bucket stops no fold, moves no
// player's guard and is reported with its place. Only a record that is signed with the
// network's own key and of a type that this version does not know stops a fold, whoever's key
// it lies under: see TestCase113_AFoldThatStopsSaysWhere.
func TestCase115_GarbageChangesNothing(t *testing.T) {
	signature := strings.Repeat("0", 64)
	garbage := map[string]struct {
		header events.Header
		body   []byte
	}{
		"nothing":             {nil, nil},
		"a KV marker":         {events.Header{"KV-Operation": "PURGE"}, nil},
		"bytes":               {nil, []byte{0xff, 0x00, 0xc1}},
		"an unsigned type":    {events.Header{events.HeaderType: "landfall.transfer.teleported.v1"}, nil},
		"a broken signature":  {events.Header{events.HeaderType: "landfall.transfer.teleported.v1", events.HeaderSig: "v1"}, nil},
		"a foreign signature": {events.Header{events.HeaderType: "landfall.transfer.requested.v1", events.HeaderSig: "v2;kid=00000000;" + signature}, []byte("x")},
	}
	keys := []string{"garbage", "a.b.c.d", alex.String(), "x.y", "backend.", "drain"}
	for name, g := range garbage {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch(t).fill().run().live()
				before, controls, fleet := w.view.Player(steve).Guard, w.view.Controls(), w.view.Fleet()
				var last uint64
				for _, b := range []events.Bucket{events.Transfers, events.Control, events.Fleet} {
					for _, key := range keys {
						seq := w.mem.Inject(b, key, g.header, g.body)
						if b == events.Transfers {
							last = seq
						}
					}
				}
				if err := w.view.WaitFolded(t.Context(), events.Transfers, last); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if p := w.view.Player(steve); !w.view.Ready() || p.Guard != before || p.Active == nil || p.Active.Phase != Pending {
					t.Errorf("ready %v, %+v", w.view.Ready(), p)
				}
				if w.view.Controls().Killed != controls.Killed || w.view.Fleet().Backend("b").Seq != fleet.Backend("b").Seq {
					t.Error("garbage changed what was known")
				}
				if len(w.problems) != 3*len(keys) {
					t.Errorf("%d problems reported, want %d", len(w.problems), 3*len(keys))
				}
				w.of(steve, first, claimed(1))
				synctest.Wait()
				if p := w.view.Player(steve); p.Active == nil || p.Active.Phase != Claimed {
					t.Errorf("the next fact was not taken: %+v", p)
				}
				w.stop()
			})
		})
	}
}
