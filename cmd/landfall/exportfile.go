package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// exportFormat names the form of an exported file; docs/export.md describes it.
const exportFormat = "landfall-export/1"

// maxFrame is more than any record takes.
const maxFrame = 4 << 20

// frame is one part of an exported file: the head, a record, or the end. Exactly one field is set.
type frame struct {
	Head   *exportHead   `msgpack:"head,omitempty"`
	Record *exportRecord `msgpack:"record,omitempty"`
	End    *exportEnd    `msgpack:"end,omitempty"`
}

// exportHead says what was exported, bucket by bucket in the order of the file.
type exportHead struct {
	Format  string         `msgpack:"format" json:"format"`
	Version string         `msgpack:"version" json:"version"` // of the program that wrote it
	Buckets []exportBucket `msgpack:"buckets" json:"buckets"`
}

// exportBucket is a bucket as it stood when the export began.
type exportBucket struct {
	Bucket      events.Bucket `msgpack:"bucket" json:"bucket"`
	Incarnation string        `msgpack:"incarnation" json:"incarnation"`
	First       uint64        `msgpack:"first" json:"first"`
	Last        uint64        `msgpack:"last" json:"last"`
	Clock       int64         `msgpack:"clock" json:"clock"` // Unix nanoseconds
}

// exportRecord is one record exactly as the log held it.
type exportRecord struct {
	Bucket events.Bucket `msgpack:"bucket"`
	Key    string        `msgpack:"key"`
	Seq    uint64        `msgpack:"seq"`
	Stored int64         `msgpack:"stored"` // Unix nanoseconds
	Header events.Header `msgpack:"headers"`
	Body   []byte        `msgpack:"body"`
}

// exportEnd closes a file: without it the copy is incomplete.
type exportEnd struct {
	Records uint64 `msgpack:"records"`
	SHA256  []byte `msgpack:"sha256"` // of all frames before this one, with their lengths
}

// exportWriter writes an exported file.
type exportWriter struct {
	zip     *gzip.Writer
	sum     hash.Hash
	records uint64
}

func newExportWriter(w io.Writer, head exportHead) (*exportWriter, error) {
	zip, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	x := &exportWriter{zip: zip, sum: sha256.New()}
	return x, x.put(frame{Head: &head})
}

func (x *exportWriter) record(r events.Record) error {
	x.records++
	return x.put(frame{Record: &exportRecord{
		Bucket: r.Bucket, Key: r.Key, Seq: r.Seq, Stored: r.Stored.UnixNano(), Header: r.Header, Body: r.Body,
	}})
}

func (x *exportWriter) close() error {
	end := exportEnd{Records: x.records, SHA256: x.sum.Sum(nil)}
	return errors.Join(x.put(frame{End: &end}), x.zip.Close())
}

// put writes a frame: its length in four bytes, then its MessagePack.
func (x *exportWriter) put(f frame) error {
	body, err := msgpack.Marshal(f)
	if err != nil {
		return err
	}
	if len(body) > math.MaxInt32 {
		return fmt.Errorf("a record of %d bytes cannot be exported", len(body))
	}
	framed := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...) //nolint:gosec // bounded above
	x.sum.Write(framed)
	_, err = x.zip.Write(framed)
	return err
}

// exported is an exported file, which is read like a log. Nothing of it is held in memory:
// each question reads the file again.
type exported struct {
	path string
	head exportHead
}

var _ history = (*exported)(nil)

// openExport reads a file once to its end, and refuses one that is damaged or incomplete.
func openExport(path string) (*exported, error) {
	x := &exported{path: path}
	err := x.frames(none, func(f frame) bool {
		if f.Head != nil {
			x.head = *f.Head
		}
		return true
	})
	return x, err
}

// Close implements readable. No file is open between two questions.
func (x *exported) Close() error { return nil }

// Info implements history.
func (x *exported) Info(_ context.Context, b events.Bucket) (events.StreamState, error) {
	for _, e := range x.head.Buckets {
		if e.Bucket == b {
			return events.StreamState{Incarnation: e.Incarnation, First: e.First, Last: e.Last, Clock: e.Clock}, nil
		}
	}
	return events.StreamState{}, fmt.Errorf("%s: %w", b, errNotExported)
}

// errNotExported is about a bucket that a file does not hold.
var errNotExported = errors.New("this bucket was not exported")

// History implements history.
func (x *exported) History(ctx context.Context, b events.Bucket, r streams.Range) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		newest, err := x.newest(b, r)
		given := 0
		if err == nil {
			err = x.frames(x.of(ctx, b, r.Keys), func(f frame) bool {
				if f.Record == nil || !within(*f.Record, r) || newest != nil && newest[f.Record.Key] != f.Record.Seq {
					return ctx.Err() == nil
				}
				given++
				return yield(f.Record.record(), nil) && given != r.Limit && ctx.Err() == nil
			})
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			yield(events.Record{}, err)
		}
	}
}

// newest gives the last sequence of each key, nil when the range does not ask for it.
func (x *exported) newest(b events.Bucket, r streams.Range) (map[string]uint64, error) {
	if !r.Newest {
		return nil, nil //nolint:nilnil // nobody asked
	}
	out := map[string]uint64{}
	err := x.frames(x.of(context.Background(), b, r.Keys), func(f frame) bool {
		if f.Record != nil {
			out[f.Record.Key] = f.Record.Seq
		}
		return true
	})
	return out, err
}

func (r exportRecord) record() events.Record {
	return events.Record{Bucket: r.Bucket, Key: r.Key, Seq: r.Seq, Stored: time.Unix(0, r.Stored).UTC(), Header: r.Header, Body: r.Body}
}

// within holds a record against a range, as the store would.
func within(rec exportRecord, r streams.Range) bool {
	stored := time.Unix(0, rec.Stored)
	return keyFits(r.Keys, rec.Key) && rec.Seq > r.After && (r.UpTo == 0 || rec.Seq <= r.UpTo) &&
		(r.Since.IsZero() || r.After > 0 || !stored.Before(r.Since)) && (r.Until.IsZero() || stored.Before(r.Until))
}

// keyFits tells that a key matches a pattern whose only wildcard is a ">" at its end.
func keyFits(pattern, key string) bool {
	prefix, open := strings.CutSuffix(pattern, ">")
	return pattern == "" || key == pattern || open && strings.HasPrefix(key, prefix)
}

// sieve says by bucket and key whether a record is wanted, and whether any may follow that is.
// Taking a record apart is most of the work of a pass, so what is not wanted is not.
type sieve func(b events.Bucket, key string) (wanted, more bool)

// none wants no record, and all of the file.
func none(events.Bucket, string) (wanted, more bool) { return false, true }

// of wants the records of a bucket whose keys fit: those behind the bucket's last are not read.
func (x *exported) of(ctx context.Context, b events.Bucket, keys string) sieve {
	begun := false
	return func(in events.Bucket, key string) (wanted, more bool) {
		over := begun && in != b
		begun = begun || in == b
		return in == b && keyFits(keys, key), !over && ctx.Err() == nil
	}
}

// frames gives what is chosen of the file, until give returns false. Whoever reads to the end
// has the whole of it checked.
func (x *exported) frames(of sieve, give func(frame) bool) error {
	file, err := os.Open(x.path)
	if err != nil {
		return err
	}
	defer file.Close()
	zip, err := gzip.NewReader(bufio.NewReaderSize(file, 1<<20))
	if err != nil {
		return fmt.Errorf("export %s: not a file that `landfall export` wrote: %w", x.path, err)
	}
	r := frameReader{in: bufio.NewReaderSize(zip, 1<<16), sum: sha256.New(), of: of}
	for {
		f, more, err := r.next()
		switch {
		case err == nil && !more:
			return nil
		case err == nil && f == (frame{}): // not wanted
		case err != nil:
			return fmt.Errorf("export %s: after %s: %w", x.path, plural(r.records, "record"), err)
		case f.End != nil || !give(f):
			return nil
		}
	}
}

// frameReader reads frames and checks that they are what was written.
type frameReader struct {
	in      *bufio.Reader
	sum     hash.Hash
	of      sieve
	body    []byte // of the frame at hand
	begun   bool
	records uint64
}

// next is the next frame, empty when it is a record that is not wanted; more is false when
// nothing behind it is.
func (r *frameReader) next() (f frame, more bool, err error) {
	var size [4]byte
	if _, err := io.ReadFull(r.in, size[:]); err != nil {
		return f, false, incomplete(err)
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxFrame {
		return f, false, fmt.Errorf("a part of %d bytes: the file is damaged", n)
	}
	r.body = slices.Grow(r.body[:0], int(n))[:n]
	if _, err := io.ReadFull(r.in, r.body); err != nil {
		return f, false, incomplete(err)
	}
	b, key, isRecord := peek(r.body)
	wanted, more := true, true
	if isRecord && r.begun {
		wanted, more = r.of(b, key)
	}
	if wanted {
		if err := msgpack.Unmarshal(r.body, &f); err != nil {
			return f, false, fmt.Errorf("the file is damaged: %w", err)
		}
		if err := r.take(f); err != nil {
			return f, false, err
		}
	} else {
		r.records++
	}
	r.sum.Write(size[:])
	r.sum.Write(r.body)
	return f, more, nil
}

// peek is the bucket and key of a record, without the rest of it; false of any other frame.
func peek(body []byte) (b events.Bucket, key string, ok bool) {
	d := msgpack.NewDecoder(bytes.NewReader(body))
	if n, err := d.DecodeMapLen(); err != nil || n != 1 {
		return "", "", false
	}
	if name, err := d.DecodeString(); err != nil || name != "record" {
		return "", "", false
	}
	if _, err := d.DecodeMapLen(); err != nil {
		return "", "", false
	}
	var values [2]string
	for i, want := range []string{"bucket", "key"} {
		name, err := d.DecodeString()
		if err != nil || name != want {
			return "", "", false
		}
		if values[i], err = d.DecodeString(); err != nil {
			return "", "", false
		}
	}
	return events.Bucket(values[0]), values[1], true
}

// take holds a frame against those before it.
func (r *frameReader) take(f frame) error {
	switch {
	case f.Head != nil && !r.begun:
		r.begun = true
		if f.Head.Format != exportFormat {
			return fmt.Errorf("its form is %q, this program reads %q", f.Head.Format, exportFormat)
		}
		return nil
	case f.Record != nil && r.begun:
		r.records++
		return nil
	case f.End != nil && r.begun:
		if f.End.Records != r.records || string(f.End.SHA256) != string(r.sum.Sum(nil)) {
			return errors.New("the file is damaged: its checksum is another one")
		}
		if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
			return fmt.Errorf("the file is damaged behind its end: %w", cmp.Or(err, errors.New("there is more")))
		}
		return nil
	}
	return errors.New("not a file that `landfall export` wrote")
}

func incomplete(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file ends before its end: the copy is incomplete")
	}
	return fmt.Errorf("the file is damaged: %w", err)
}
