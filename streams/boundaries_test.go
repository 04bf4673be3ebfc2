package streams_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// TestOneFunctionSetsTheGuard (P5): on a replicated store two appends that name different
// guards of one boundary can both win, so one function alone may put a guard on a message.
// The race itself is "guard/two keys of a player race" of the conformance suite.
func TestOneFunctionSetsTheGuard(t *testing.T) {
	var users []string
	for path, file := range sources(t) {
		if mentionsExpectation(file) && path != "streams/append.go" {
			t.Errorf("%s names an expectation of the store: only streams.Append may", path)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && strings.HasPrefix(path, "streams/") && uses(f, "headerGuardSubject", "headerGuardSeq") {
				users = append(users, f.Name.Name)
			}
		}
	}
	if !slices.Equal(users, []string{"publication"}) {
		t.Errorf("the guard is set by %q, want publication alone", users)
	}
}

// sources gives what is compiled into the program, by path below the module.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	out := map[string]*ast.File{}
	root := ".."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || path != root && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err == nil {
			out[filepath.ToSlash(name)], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if out["streams/append.go"] == nil {
		t.Fatalf("looked at %d files, none of them streams/append.go", len(out))
	}
	return out
}

// mentionsExpectation looks for the client's options and headers of expected sequences.
func mentionsExpectation(file *ast.File) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			found = found || strings.HasPrefix(n.Name, "ExpectedLast") || strings.HasPrefix(n.Name, "WithExpectLast")
		case *ast.BasicLit:
			found = found || n.Kind == token.STRING && strings.Contains(n.Value, "Expected-Last")
		}
		return true
	})
	return found
}

func uses(f *ast.FuncDecl, names ...string) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && slices.Contains(names, id.Name)
		return true
	})
	return found
}

// TestGarbageElsewhere (P12): whatever lies in a bucket under other keys, a player's facts are
// found, followed and guarded as before. What a fold makes of it: projections.TestCase115_GarbageChangesNothing.
func TestGarbageElsewhere(t *testing.T) {
	srv := openServer(t, testConfig(t))
	st := ensured(t, srv.Connection())
	js := raw(t, srv)
	f := tailing(t, st, events.Transfers, events.TailStart{})
	receive(t, "Live", f.lives)
	prev, all := uint64(0), 0
	player := key(1, 1)[:36]
	for i, garbage := range []*nats.Msg{
		{Subject: "$KV.transfers.garbage"},
		{Subject: "$KV.transfers." + player + "0.x", Data: []byte{0xff, 0}},
		{Subject: "$KV.transfers.a.b.c.d", Data: make([]byte, 8<<10)},
		{Subject: "$KV.transfers." + key(2, 1), Header: nats.Header{"KV-Operation": {"PURGE"}}},
		{Subject: "$KV.transfers.x.y", Header: nats.Header{"ce-type": {"landfall.transfer.teleported.v1"}, "ce-id": {"no id"}, "Landfall-Sig": {"v1"}}},
		{Subject: "$KV.transfers.z.y", Header: nats.Header{"ce-type": {"one", "two"}}},
	} {
		if _, err := js.PublishMsg(t.Context(), garbage); err != nil {
			t.Fatalf("%s: %v", garbage.Subject, err)
		}
		prev = mustAppend(t, st, message(events.Transfers, key(1, i+1), prev))
		if all += 2; prev != uint64(all) {
			t.Errorf("the fact behind %s got sequence %d", garbage.Subject, prev)
		}
	}
	for want := 1; want <= all; want++ {
		if r := receive(t, "record", f.records); r.Seq != uint64(want) {
			t.Fatalf("record %d came where %d belongs", r.Seq, want)
		}
	}
	if got := history(t, st, events.Transfers, streams.Range{Keys: player + ".>"}); len(got) != all/2 || len(f.blinds) != 0 {
		t.Errorf("%d facts of the player, want %d; blind %d times", len(got), all/2, len(f.blinds))
	}
}

// TestStoresOfTestsAreApart (P28): two stores in one process, as tests have them, share
// nothing, although their servers bear one name: neither facts nor requests nor news.
func TestStoresOfTestsAreApart(t *testing.T) {
	one, two := newStore(t), newStore(t)
	f := tailing(t, two, events.Transfers, events.TailStart{})
	receive(t, "Live", f.lives)
	subject := events.ToBackend("b1", events.VerbReserve)
	ready := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- one.Serve(ctx, subject, "q", func() { close(ready) }, func(_ context.Context, _ string, w events.Wire) events.Wire { return w })
	}()
	receive(t, "ready", ready)
	if _, err := two.Ask(t.Context(), subject, events.Wire{}); err == nil {
		t.Error("a request reached the other store")
	}
	for i := range 10 {
		mustAppend(t, one, message(events.Transfers, key(i, 1), 0))
	}
	if seq := mustAppend(t, two, message(events.Transfers, key(1, 1), 0)); seq != 1 {
		t.Errorf("the other store's first fact has sequence %d", seq)
	}
	if r := receive(t, "record", f.records); r.Seq != 1 || len(f.records) != 0 {
		t.Errorf("the tail got %d and %d more", r.Seq, len(f.records))
	}
	cancel()
	receive(t, "end of Serve", ended)
}
