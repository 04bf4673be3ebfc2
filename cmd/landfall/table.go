package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// table is what a question was answered with.
type table struct {
	columns []string
	rows    [][]string
	numeric []bool // columns that hold nothing but numbers
	count   int
}

// add keeps a row for print.
func (t *table) add(values []any) error {
	if t.numeric == nil {
		t.numeric = make([]bool, len(values))
		for i := range t.numeric {
			t.numeric[i] = true
		}
	}
	row := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case nil:
			row[i] = "-"
		case int64:
			row[i] = strconv.FormatInt(v, 10)
		case float64:
			row[i] = number(v)
		case []byte:
			row[i], t.numeric[i] = hex.EncodeToString(v), false
		default:
			row[i], t.numeric[i] = printable(fmt.Sprint(v)), false
		}
	}
	t.rows, t.count = append(t.rows, row), t.count+1
	return nil
}

// print writes the rows in columns as wide as they must be.
func (t *table) print(w io.Writer) error {
	width := make([]int, len(t.columns))
	for i, name := range t.columns {
		width[i] = utf8.RuneCountInString(name)
		for _, row := range t.rows {
			width[i] = max(width[i], utf8.RuneCountInString(row[i]))
		}
	}
	line := func(cells []string) error {
		var out strings.Builder
		for i, cell := range cells {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if t.numeric != nil && t.numeric[i] {
				out.WriteString(pad + cell + "  ")
			} else {
				out.WriteString(cell + pad + "  ")
			}
		}
		_, err := fmt.Fprintln(w, strings.TrimRight(out.String(), " "))
		return err
	}
	heads := make([]string, len(t.columns))
	for i, name := range t.columns {
		heads[i] = strings.ToUpper(printable(name))
	}
	if err := line(heads); err != nil {
		return err
	}
	for _, row := range t.rows {
		if err := line(row); err != nil {
			return err
		}
	}
	return nil
}

// json writes a row as one object, its fields in the order of the columns.
func (t *table) json(w io.Writer, values []any) error {
	t.count++
	var out strings.Builder
	for i, v := range values {
		if blob, ok := v.([]byte); ok {
			v = hex.EncodeToString(blob)
		}
		name, err := json.Marshal(t.columns[i])
		if err != nil {
			return err
		}
		value, err := json.Marshal(v)
		if err != nil {
			return err
		}
		out.WriteString([]string{"{", ","}[min(i, 1)] + string(name) + ":" + string(value))
	}
	_, err := fmt.Fprintln(w, out.String()+"}")
	return err
}
