package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var updateTranscripts = flag.Bool("update", false, "write testdata/cli anew")

// transcript is what somebody sees who types a command.
type transcript struct {
	bytes.Buffer
}

func (t *transcript) add(command string, stdout, stderr string, status int) {
	fmt.Fprintf(t, "$ landfall %s\n%s", command, stdout)
	if stderr != "" {
		fmt.Fprintf(t, "--- stderr\n%s", stderr)
	}
	fmt.Fprintf(t, "=> %d\n\n", status)
}

// matches holds the transcript against its file in testdata/cli.
func (t *transcript) matches(tb testing.TB, name string) {
	tb.Helper()
	path := filepath.Join("..", "..", "testdata", "cli", name+".txt")
	got := strings.TrimRight(t.String(), "\n") + "\n"
	if *updateTranscripts {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			tb.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		tb.Fatalf("%v; write it with -update", err)
	}
	if string(want) != got {
		tb.Errorf("%s differs (write it anew with -update, then look at the diff); got:\n%s", path, got)
	}
}

// outcome is what a command left.
type outcome struct {
	stdout, stderr string
	status         int
}

// onTape runs a reading verb as its command line says, but on a tape.
func onTape(tb testing.TB, log history, secrets [][]byte, args ...string) outcome {
	tb.Helper()
	o, err := newOpener(trust{secrets: secrets})
	if err != nil {
		tb.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	switch args[0] {
	case "tail":
		err = tailOnTape(tb, log, o, &stdout, &stderr, args[1:])
	case "replay":
		err = replayOnTape(tb, log, o, &stdout, &stderr, args[1:])
	case "state":
		err = stateOnTape(tb, log, o, &stdout, &stderr, args[1:])
	case "explain":
		err = explainOnTape(tb, log, o, &stdout, &stderr, args[1:])
	case "whatif":
		err = whatifOnTape(tb, log, o, &stdout, &stderr, args[1:])
	case "diff":
		err = diffOnTape(tb, log, o, &stdout, args[1:])
	default:
		tb.Fatalf("no verb %q on a tape", args[0])
	}
	if text := oneLine(err); text != "" {
		fmt.Fprintln(&stderr, "landfall:", text)
	}
	return outcome{stdout.String(), stderr.String(), statusOf(err)}
}

func tailOnTape(tb testing.TB, log history, o *opener, stdout, stderr *bytes.Buffer, args []string) error {
	tb.Helper()
	var f tailFlags
	c := &cobra.Command{}
	f.addTo(c)
	if err := c.ParseFlags(args); err != nil {
		tb.Fatal(err)
	}
	f.afterSet = c.Flags().Changed("after")
	t, err := f.plan()
	if err != nil {
		return err
	}
	t.opener, t.out, t.flush, t.notes = o, printer{w: stdout, json: f.json}, func() error { return nil }, stderr
	if err := t.begin(tb.Context(), log, f.player); err != nil {
		return err
	}
	return t.finish(tb.Context())
}

func replayOnTape(tb testing.TB, log history, o *opener, stdout, stderr *bytes.Buffer, args []string) error {
	tb.Helper()
	var f replayFlags
	verbs := map[string]func(string) (telling, error){"token": tellToken, "player": tellPlayer, "transfer": tellTransfer}
	tell, err := verbs[args[0]](args[1])
	if err != nil {
		return err
	}
	c := f.verb(args[0], "", "", nil)
	if err := c.ParseFlags(args[2:]); err != nil {
		tb.Fatal(err)
	}
	v, err := f.view()
	if err != nil {
		return err
	}
	r := &replay{log: log, opener: o, out: printer{w: stdout, json: f.json}, notes: stderr, view: v, sessions: f.sessions}
	status, err := tell(tb.Context(), r)
	if err == nil && status != statusOK {
		err = exitWith(status, nil)
	}
	return err
}

func stateOnTape(tb testing.TB, log history, o *opener, stdout, stderr *bytes.Buffer, args []string) error {
	tb.Helper()
	var f stateFlags
	t, err := topicOf(args[0])
	if err != nil {
		return err
	}
	if err := f.verb(t).ParseFlags(args[1:]); err != nil {
		tb.Fatal(err)
	}
	m, err := parseMoment("--as-of", f.asOf, t.bucket)
	if err != nil {
		return err
	}
	return showState(tb.Context(), log, o, t, m, printer{w: stdout, json: f.json}, stderr)
}

func explainOnTape(tb testing.TB, log history, o *opener, stdout, stderr *bytes.Buffer, args []string) error {
	tb.Helper()
	tell, err := tellChoices(args[0])
	if err != nil {
		return err
	}
	r := &replay{log: log, opener: o, out: printer{w: stdout, json: len(args) > 1}, notes: stderr, view: view{explain: true}}
	status, err := tell(tb.Context(), r)
	if err == nil && status != statusOK {
		err = exitWith(status, nil)
	}
	return err
}

func whatifOnTape(tb testing.TB, log history, o *opener, stdout, stderr *bytes.Buffer, args []string) error {
	tb.Helper()
	var f whatifFlags
	c := &cobra.Command{}
	f.addTo(c)
	if err := c.ParseFlags(args); err != nil {
		tb.Fatal(err)
	}
	w, err := f.plan()
	if err != nil {
		return err
	}
	return w.run(tb.Context(), log, o, printer{w: stdout, json: f.json}, stderr)
}

func diffOnTape(tb testing.TB, log history, o *opener, stdout *bytes.Buffer, args []string) error {
	tb.Helper()
	var f diffFlags
	c := &cobra.Command{}
	f.addTo(c)
	if err := c.ParseFlags(args); err != nil {
		tb.Fatal(err)
	}
	return f.show(tb.Context(), log, o, c.Flags().Args(), stdout)
}

// withKey are the secrets of a reader who has the network's.
func withKey() [][]byte { return [][]byte{testSecret} }

// typed runs the whole program.
func typed(tb testing.TB, args ...string) outcome {
	tb.Helper()
	var stdout, stderr bytes.Buffer
	status := run(tb.Context(), args, &stdout, &stderr)
	return outcome{stdout.String(), stderr.String(), status}
}
