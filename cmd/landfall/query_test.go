package main

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections/archive"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/streamtest"
)

// archived makes the archive of a log that does not grow.
func archived(t *testing.T, log history) archive.Directory {
	t.Helper()
	dir := archive.Directory(filepath.Join(t.TempDir(), "archive"))
	state, err := log.Info(t.Context(), events.Transfers)
	if err != nil {
		t.Fatal(err)
	}
	name, err := dir.Make(t.Context(), archive.Identity{Network: "test", Incarnation: state.Incarnation, Fold: archive.Current.Version})
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Point(archive.Pointer{View: viewOf("hub"), Network: "test", Live: name}); err != nil {
		t.Fatal(err)
	}
	f, err := archive.Open(t.Context(), dir.File(name), "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := archive.NewProjector(f, archive.Config{Log: endedLog{log}, Keys: streamtest.Keyring(), Once: true}).Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestQuery(t *testing.T) {
	tape := wholeTape(t)
	tape.expire(events.Transfers, 2)
	dir := archived(t, tape)
	for name, commands := range map[string][][]string{
		"reports": {
			{"failures"}, {"failures", "--since", "1m"}, {"servers"}, {"slowest", "--limit", "3"}, {"player", "alex"}, {"player", "Nobody"},
			{"lost"}, {"lost", "--server", "survival-9"}, {"attempts", "--region", "spawn"}, {"arrivals"}, {"refusals"},
		},
		"json": {{"servers", "--json"}, {"player", events.OfflinePlayer("Alex").String(), "--json"}, {"failures", "--json", "--limit", "1"}},
		"sql": {
			{"sql", "SELECT place, name, phase, requested_at FROM transfers ORDER BY place LIMIT 2"},
			{"sql", "SELECT x'cafe' AS blob, NULL AS none, 1.5 AS half", "--json"},
			{"sql", "SELECT nme FROM transfers"}, {"sql", "DELETE FROM transfers"}, {"sql", "PRAGMA query_only = off"},
			{"sql", "ATTACH 'x.db' AS x"}, {"sql", "VACUUM INTO 'y.db'"}, {"sql", "SELECT load_extension('z')"},
			{"sql", "SELECT 1; DROP TABLE transfers"},
			{"sql", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n", "--timeout", "50ms"},
		},
		"usage":  {{"failure"}, {"player"}, {"failures", "--limit", "0"}, {"failures", "--since", "17"}, {"sql"}},
		"help":   {{"--help"}, {"failures", "--help"}, {"sql", "--help"}},
		"schema": {{"schema"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got transcript
			for _, args := range commands {
				args = append([]string{"query"}, args...)
				typedArgs := args
				if name != "help" && name != "schema" {
					typedArgs = append(typedArgs, "--db", string(dir), "--store", string(dir)+"/none")
				}
				o := typed(t, typedArgs...)
				got.add(strings.Join(args, " "), strings.ReplaceAll(o.stdout, string(dir), "DIR"), strings.ReplaceAll(o.stderr, string(dir), "DIR"), o.status)
			}
			got.matches(t, "query-"+name)
		})
	}
	if left, _ := filepath.Glob("*.db"); len(left) > 0 {
		t.Errorf("a question left files: %v", left)
	}
}

func TestQueryWithoutAnArchive(t *testing.T) {
	t.Chdir(t.TempDir())
	if o := typed(t, "query", "failures"); o.status != statusFailed || !strings.Contains(o.stderr, "hosts.<id>.archive") {
		t.Errorf("%+v", o)
	}
}

// TestAHostKeepsAnArchive: it follows the log, goes on after a restart, and says how far it is.
func TestAHostKeepsAnArchive(t *testing.T) {
	t.Setenv(envSecret, encoded(realSecret))
	address := unused(t)
	s := newSite(t, "network: { name: test, enabled: true }\nstore: { carrier: hub, url: \"nats://"+address+"\", listen: \""+address+"\", maxBytes: 1073741824 }\nhosts: { hub: { archive: archive } }\n")
	story, j := tapeOf(t, "completed")
	for life, upTo := range []int{3, 6} {
		hub := s.up(t, "hub")
		hub.says(t, "the archive is kept")
		login := operatorLogin(realSecret)
		st, err := streams.Connect(t.Context(), streams.Config{URL: "nats://" + address, Role: login.Role, ID: login.ID, User: login.Name, Password: login.Password, Network: "test", AnySettings: true})
		if err != nil {
			t.Fatal(err)
		}
		c := carrier{store: st}
		for _, r := range story.records[events.Transfers][life*3 : upTo] {
			c.append(t, r)
		}
		phase := []string{"CLAIMED", "COMPLETED"}[life]
		o := until(t, func(o outcome) bool { return strings.Contains(o.stdout, phase) }, "query", "player", "Steve", "--config", filepath.Join(s.dir, "network.yml"), "--json")
		if !strings.Contains(o.stdout, j.id.String()) || !strings.Contains(o.stdout, `"log":{"seq":`+strconv.Itoa(upTo)+`,"behind":0,"behindMs":0}`) {
			t.Errorf("life %d: %+v", life, o)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		hub.stop(t)
	}
}
