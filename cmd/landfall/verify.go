package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// verifyFlags are the command line of verify.
type verifyFlags struct {
	storeFlags
	remembered []string
	json       bool
}

func newVerify() *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check that nothing in the log was changed, removed or put in",
		Long: `Reads the whole log and checks of every record its signature, that it was written on top of the
one before it (ce-prev), and that no sequence is missing that retention does not explain; and of
every checkpoint that it follows the one before and that the facts it seals are those that are
there. A lost end shows when a checkpoint is known that reaches further: one in the log, or one
that a host remembers (--remembered, the checkpoint.json in a host's state directory).

Facts behind the last checkpoint (at most 10 minutes or 10,000 of them) are checked one by one,
but nothing would tell that they are gone.

Exit status: 0 nothing is wrong, 1 it could not be read, 2 something is wrong: the first bad
sequence is named first, 3 nothing is wrong, but signatures could not be checked for lack of a
key, 64 wrong command line, 130 interrupted.`,
		Example: `  landfall verify --config network.yml
  landfall verify --from-file november.landfall --json`,
		Args: exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			memories, err := readMemories(f.remembered)
			if err != nil {
				return err
			}
			return f.reading(c.Context(), func(log history, o *opener) error {
				out := bufio.NewWriter(c.OutOrStdout())
				return errors.Join(verify(c.Context(), log, o, memories, printer{w: out, json: f.json}), out.Flush())
			})
		},
	}
	f.add(c)
	f.addFile(c)
	c.Flags().StringSliceVar(&f.remembered, "remembered", nil, "also hold the log against the checkpoint in this `FILE` of a host (repeatable)")
	c.Flags().BoolVar(&f.json, "json", false, "one JSON object a line; the last one has kind \"end\"")
	return c
}

func readMemories(files []string) (out []events.Checkpoint, err error) {
	for _, file := range files {
		c, err := readCheckpoint(file)
		if err == nil && c.Number == 0 {
			err = fmt.Errorf("%s: %w", file, fs.ErrNotExist)
		}
		if err != nil {
			return nil, fmt.Errorf("--remembered: %w", err)
		}
		out = append(out, c)
	}
	return out, nil
}

// Kinds of finding.
const (
	findSignature  = "BAD_SIGNATURE"
	findMalformed  = "MALFORMED"
	findPrev       = "WRONG_PREV"
	findHole       = "HOLE"
	findCheckpoint = "CHECKPOINT"
	findLost       = "LOST_END"
)

// finding is one thing that is wrong.
type finding struct {
	Kind   string        `json:"kind"` // always "finding"
	Code   string        `json:"code"`
	Bucket events.Bucket `json:"bucket"`
	Seq    uint64        `json:"seq"` // the first one that is wrong
	Text   string        `json:"text"`
}

func (f finding) String() string {
	return printable(fmt.Sprintf("%-12s %8d  %-14s %s", f.Bucket, f.Seq, f.Code, f.Text))
}

// bucketChecked is what was read of a bucket.
type bucketChecked struct {
	Bucket  events.Bucket `json:"bucket"`
	First   uint64        `json:"first"`
	Last    uint64        `json:"last"`
	Records uint64        `json:"records"`
	NoKey   uint64        `json:"noKey"` // signed with a key that is not at hand
}

// verifyEnd is the verdict.
type verifyEnd struct {
	Kind        string          `json:"kind"`
	Verified    bool            `json:"verified"`
	Findings    int             `json:"findings"`
	First       *finding        `json:"first,omitempty"`
	Buckets     []bucketChecked `json:"buckets"`
	Checkpoints int             `json:"checkpoints"`
	SealedTo    uint64          `json:"sealedTo"` // last sequence of transfers that a checkpoint seals
}

func (e verifyEnd) String() string {
	var text strings.Builder
	for _, b := range e.Buckets {
		fmt.Fprintf(&text, "%-12s %s, sequences %d to %d", b.Bucket, plural(b.Records, "record"), b.First, b.Last)
		if b.NoKey > 0 {
			fmt.Fprintf(&text, ", %d not checked for lack of their key", b.NoKey)
		}
		text.WriteString("\n")
	}
	fmt.Fprintf(&text, "%s, sealed up to transfers %d\n", plural(e.Checkpoints, "checkpoint"), e.SealedTo)
	if e.First != nil {
		return text.String() + fmt.Sprintf("NOT the log that was written: %s, the first bad sequence is %d of %s", plural(e.Findings, "finding"), e.First.Seq, e.First.Bucket)
	}
	return text.String() + "nothing is wrong"
}

// verify checks the whole log and prints what is wrong with it.
func verify(ctx context.Context, log history, o *opener, remembered []events.Checkpoint, out printer) error {
	v := &verifier{log: log, opener: o}
	if err := v.read(ctx); err != nil {
		return err
	}
	for _, m := range remembered {
		v.remembers(m, v.end(events.Transfers))
	}
	end := v.verdict() // which puts them in order
	for _, f := range v.findings {
		if err := out.print(f); err != nil {
			return err
		}
	}
	if err := out.print(end); err != nil {
		return err
	}
	switch {
	case !end.Verified:
		return exitWith(statusInconsistent, nil)
	case slices.ContainsFunc(end.Buckets, func(b bucketChecked) bool { return b.NoKey > 0 }):
		return exitWith(statusIncomplete, nil)
	}
	return nil
}

// verifier reads a log once and notes what is wrong.
type verifier struct {
	log      history
	opener   *opener
	findings []finding
	buckets  []bucketChecked
	seals    seals
}

// read takes the checkpoints first, so that they are at hand when their facts come.
func (v *verifier) read(ctx context.Context) error {
	rest := slices.DeleteFunc(slices.Clone(exportBuckets), func(b events.Bucket) bool { return b == events.Checkpoints })
	for _, b := range append([]events.Bucket{events.Checkpoints}, rest...) {
		if err := v.bucket(ctx, b); err != nil {
			return err
		}
	}
	v.chained(v.end(events.Transfers))
	return nil
}

// end is the last sequence of a bucket that was read.
func (v *verifier) end(b events.Bucket) uint64 {
	for _, done := range v.buckets {
		if done.Bucket == b {
			return done.Last
		}
	}
	return 0
}

func (v *verifier) find(code string, b events.Bucket, seq uint64, text string) {
	v.findings = append(v.findings, finding{Kind: "finding", Code: code, Bucket: b, Seq: seq, Text: text})
}

func (v *verifier) verdict() verifyEnd {
	slices.SortStableFunc(v.findings, func(a, b finding) int {
		return cmp.Or(bucketOrder(a.Bucket)-bucketOrder(b.Bucket), cmp.Compare(a.Seq, b.Seq))
	})
	slices.SortFunc(v.buckets, func(a, b bucketChecked) int { return bucketOrder(a.Bucket) - bucketOrder(b.Bucket) })
	end := verifyEnd{Kind: "end", Verified: len(v.findings) == 0, Findings: len(v.findings), Buckets: v.buckets, Checkpoints: len(v.seals.checkpoints), SealedTo: v.seals.to}
	if !end.Verified {
		end.First = &v.findings[0]
	}
	return end
}

func bucketOrder(b events.Bucket) int { return slices.Index(exportBuckets, b) }

// bucket checks the records of one bucket, one by one.
func (v *verifier) bucket(ctx context.Context, b events.Bucket) error {
	state, err := v.log.Info(ctx, b)
	if errors.Is(err, errNotExported) {
		return nil
	}
	if err != nil {
		return err
	}
	done := bucketChecked{Bucket: b, First: state.First, Last: state.Last}
	c := newChain(b, state.First)
	var broken []*sealing
	if b == events.Transfers {
		v.seals.begin(state.First)
	}
	if state.Last > 0 {
		for rec, err := range v.log.History(ctx, b, streams.Range{UpTo: state.Last}) {
			if err != nil {
				return err
			}
			done.Records++
			if b == events.Transfers {
				broken = append(broken, v.seals.follow(rec)...)
			}
			v.record(c, rec, &done)
		}
	}
	if b == events.Transfers {
		broken = append(broken, v.seals.complete(state.Last)...)
	}
	for _, hole := range c.holes(state.Last) {
		v.find(findHole, b, hole.from, fmt.Sprintf("%s missing that retention does not explain: %d to %d", plural(hole.to-hole.from+1, "record"), hole.from, hole.to))
	}
	v.unsealed(broken)
	v.buckets = append(v.buckets, done)
	return nil
}

// record checks one record by itself, and that it stands on top of the one before it.
func (v *verifier) record(c *chain, rec events.Record, done *bucketChecked) {
	r := v.opener.open(rec)
	switch {
	case r.verified == noKey:
		done.NoKey++
	case r.verified == forged:
		v.find(findSignature, rec.Bucket, rec.Seq, r.refusal.Error()+" ("+rec.Key+")")
	case r.refusal != nil:
		v.find(findMalformed, rec.Bucket, rec.Seq, r.refusal.Error()+" ("+rec.Key+")")
	}
	if before, ok := c.follow(rec.Key, rec.Seq, r.prev()); !ok && r.verified != forged {
		v.find(findPrev, rec.Bucket, rec.Seq, fmt.Sprintf("written on top of %d, but %d came before it (%s)", r.prev(), before, rec.Key))
	}
	if f, ok := r.event.Fact.(*events.Checkpoint); ok && r.verified != forged && rec.Key == events.CheckpointKey(f.Number) {
		v.seals.add(*f)
	}
}
