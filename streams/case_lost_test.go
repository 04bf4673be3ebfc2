package streams_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// A disk that was full, or a directory that somebody removed, has taken a stream with it. The
// next start finds the others, and makes no empty log in its place: that would be taken for the
// truth.
func TestCase089_ALostStreamStaysLost(t *testing.T) {
	for _, c := range []struct {
		bucket events.Bucket
		says   string // empty: it is made anew
	}{
		{events.Transfers, "stream KV_transfers is missing and KV_sessions is there: it was lost"},
		{events.Control, "stream KV_control is missing and KV_audit is there: it was lost"},
		{events.Checkpoints, "stream KV_checkpoints is missing and KV_fleet is there: it was lost"},
		{events.Leases, ""},
	} {
		t.Run(string(c.bucket), func(t *testing.T) {
			cfg := testConfig(t)
			srv, err := embedded.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			ensured(t, srv.Connection())
			if err := srv.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(cfg.Dir, "jetstream", "$G", "streams", streams.StreamName(c.bucket))); err != nil {
				t.Fatal(err)
			}
			st := connect(t, openServer(t, cfg).Connection())
			err = st.Ensure(t.Context())
			_, missing := st.Info(t.Context(), c.bucket)
			if c.says == "" {
				if err != nil || missing != nil {
					t.Errorf("a bucket that only holds what expires: %v, %v", err, missing)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "restore the store's directory") {
				t.Errorf("started with %v", err)
			}
			if missing == nil {
				t.Error("an empty stream was made in its place")
			}
		})
	}
}
