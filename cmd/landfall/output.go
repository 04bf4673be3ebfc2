package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/landfall/landfall/events"
)

// timeForm shows stored times: UTC, with milliseconds.
const timeForm = "2006-01-02T15:04:05.000Z"

// factRow is one record of the log as the verbs print it: a line of columns, or of JSON.
type factRow struct {
	Seq         uint64          `json:"seq"`
	Bucket      events.Bucket   `json:"bucket"`
	Key         string          `json:"key"`
	Stored      time.Time       `json:"stored"` // the stream's clock
	Time        string          `json:"time"`   // the writer's clock
	Schema      int             `json:"schema"`
	Type        string          `json:"type"`
	Source      string          `json:"source"`
	ID          string          `json:"id"`
	Correlation string          `json:"correlation"`
	Prev        uint64          `json:"prev"`
	Verified    verdict         `json:"verified"`
	Fact        json.RawMessage `json:"fact"`            // null when it cannot be decoded
	Error       string          `json:"error,omitempty"` // why no fold takes it

	who, text string
}

func rowOf(r reading) factRow {
	schema, _ := strconv.Atoi(r.Header[events.HeaderSchema])
	row := factRow{
		Seq: r.Seq, Bucket: r.Bucket, Key: r.Key, Stored: r.Stored.UTC(), Time: r.Header[events.HeaderTime], Schema: schema,
		Type: r.Header[events.HeaderType], Source: r.Header[events.HeaderSource], ID: r.Header[events.HeaderID],
		Correlation: r.Header[events.HeaderCorrelation], Prev: r.prev(), Verified: r.verified, Fact: json.RawMessage("null"),
		who: whose(r),
	}
	if r.refusal != nil {
		row.Error = r.refusal.Error()
	}
	if r.undecodable() {
		row.Error = "decode-error: " + row.Error
		return row
	}
	row.text = describe(r.event.Fact)
	body, err := json.Marshal(r.event.Fact)
	if err != nil { // not a number, or infinite: JSON has no word for it
		row.Error = strings.TrimPrefix(row.Error+"; not shown as JSON: "+err.Error(), "; ")
		return row
	}
	row.Fact = body
	return row
}

// whose is the entity of a record, short enough for a column.
func whose(r reading) string {
	switch player := r.player(); {
	case player.IsZero():
		return r.Key
	case r.Bucket == events.Transfers:
		return player.Short() + "." + r.transfer().Short()
	default:
		return player.Short()
	}
}

// String is the row in columns.
func (r factRow) String() string {
	what := r.text
	if r.Error != "" {
		what += "  [" + r.Error + "]"
	}
	if r.Verified == noKey {
		what += "  [no key]"
	}
	return printable(fmt.Sprintf("%8d  %s  %-15s  %-17s  %-18s  %s", r.Seq, r.Stored.Format(timeForm), shortType(r.Type), r.who, shortSource(r.Source), strings.TrimLeft(what, " ")))
}

// tailHeader names the columns of factRow.
const tailHeader = "     SEQ  STORED                    TYPE             WHOSE              BY                  WHAT"

// shortSource is "edge/e1" of "/edge/e1/<incarnation>".
func shortSource(source string) string {
	parts := strings.Split(source, "/")
	if len(parts) != 4 {
		return source
	}
	return parts[1] + "/" + parts[2]
}

// printable keeps what somebody wrote into the log from speaking to the terminal.
func printable(line string) string {
	clean := func(r rune) bool { return !unicode.IsPrint(r) }
	if strings.IndexFunc(line, clean) < 0 {
		return line
	}
	var b strings.Builder
	for _, r := range line {
		if clean(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// printer writes rows, each in one piece: as text, or as one JSON object a line.
type printer struct {
	w    io.Writer
	json bool
}

func (p printer) print(row fmt.Stringer) error {
	if !p.json {
		_, err := fmt.Fprintln(p.w, row)
		return err
	}
	line, err := json.Marshal(row)
	if err != nil {
		return err
	}
	_, err = p.w.Write(append(line, '\n'))
	return err
}

// plural is "1 message", "2 messages".
func plural[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
