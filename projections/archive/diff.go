package archive

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// TableDiff is what differs between two files in one table.
type TableDiff struct {
	Table   string   `json:"table"`
	A       int64    `json:"a"`       // rows there
	B       int64    `json:"b"`       // rows here
	OnlyA   int64    `json:"onlyA"`   // keys that are there alone
	OnlyB   int64    `json:"onlyB"`   // keys that are here alone
	Changed int64    `json:"changed"` // keys with other values
	Keys    []string `json:"keys"`    // some of them, in the order of the keys
}

// Equal tells that nothing differs.
func (d TableDiff) Equal() bool { return d.OnlyA+d.OnlyB+d.Changed == 0 }

// Comparison is what differs between two files, as far as both can know it.
type Comparison struct {
	From   uint64      `json:"from"`  // transfers that begin before are not in both: left out
	At     uint64      `json:"at"`    // the sequence up to which both have read
	Moved  int64       `json:"moved"` // transfers that one file has seen go on behind it: left out
	Tables []TableDiff `json:"tables"`
}

// Equal tells that nothing differs.
func (c Comparison) Equal() bool {
	return !slices.ContainsFunc(c.Tables, func(d TableDiff) bool { return !d.Equal() })
}

// Compare holds two files of one log against each other, table by table, naming at most
// sample keys of each. One may have read further than the other, or from further back: what
// only it can know is left out.
func Compare(ctx context.Context, a, b string, sample int) (c Comparison, err error) {
	db, err := openDB(a, "ro")
	if err != nil {
		return c, err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return c, err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "ATTACH ? AS b", uri(b)+"?mode=ro"); err != nil {
		return c, fmt.Errorf("archive %s: %w", b, err)
	}
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil { // one moment of both
		return c, err
	}
	for _, bound := range []struct {
		of   *uint64
		what string
	}{{&c.From, "max(x.begins, y.begins)"}, {&c.At, "min(x.seq, y.seq)"}} {
		if err := one(ctx, conn, "SELECT "+bound.what+" FROM main.positions x JOIN b.positions y USING (bucket) WHERE bucket = 'transfers'", bound.of); err != nil {
			return c, err
		}
	}
	if _, err := conn.ExecContext(ctx, "CREATE TEMP TABLE moved (place INTEGER PRIMARY KEY)"); err != nil {
		return c, err
	}
	if _, err := conn.ExecContext(ctx, fmt.Sprintf("INSERT INTO moved SELECT place FROM main.transfers WHERE last_seq > %d UNION SELECT place FROM b.transfers WHERE last_seq > %d", c.At, c.At)); err != nil {
		return c, err
	}
	if err := one(ctx, conn, "SELECT count(*) FROM moved", &c.Moved); err != nil {
		return c, err
	}
	for _, t := range content {
		d, err := compareTable(ctx, conn, t.name, t.key, c, sample)
		if err != nil {
			return c, fmt.Errorf("compare %s: %w", t.name, err)
		}
		c.Tables = append(c.Tables, d)
	}
	return c, nil
}

func compareTable(ctx context.Context, db querier, table string, key []string, c Comparison, sample int) (TableDiff, error) {
	d := TableDiff{Table: table, Keys: []string{}}
	columns, err := columnsOf(ctx, db, "main."+table)
	if err != nil {
		return d, err
	}
	theirs, err := columnsOf(ctx, db, "b."+table)
	if err != nil {
		return d, err
	}
	on, values := make([]string, len(key)), make([]string, 0, len(columns))
	for i, k := range key {
		on[i] = "x." + k + " = y." + k
	}
	for _, c := range columns {
		for _, t := range theirs {
			if c == t {
				values = append(values, "x."+c+" IS NOT y."+c)
			}
		}
	}
	name := "x." + strings.Join(key, " || '/' || x.")
	join := strings.Join(on, " AND ")
	x, y := shared(table, "main", c), shared(table, "b", c)
	for _, q := range []struct {
		count *int64
		from  string
	}{
		{&d.A, x + " x"},
		{&d.B, y + " x"},
		{&d.OnlyA, x + " x WHERE NOT EXISTS (SELECT 1 FROM b." + table + " y WHERE " + join + ")"},
		{&d.OnlyB, y + " x WHERE NOT EXISTS (SELECT 1 FROM main." + table + " y WHERE " + join + ")"},
		{&d.Changed, x + " x JOIN b." + table + " y ON " + join + " WHERE " + strings.Join(values, " OR ")},
	} {
		if err := one(ctx, db, "SELECT count(*) FROM "+q.from, q.count); err != nil {
			return d, err
		}
		if q.count == &d.A || q.count == &d.B || *q.count == 0 || len(d.Keys) == sample {
			continue
		}
		if err := some(ctx, db, fmt.Sprintf("SELECT %s FROM %s ORDER BY x.%s LIMIT %d", name, q.from, strings.Join(key, ", x."), sample-len(d.Keys)), &d.Keys); err != nil {
			return d, err
		}
	}
	return d, nil
}

// shared is a table without what only one of two files can know.
func shared(table, in string, c Comparison) string {
	known := fmt.Sprintf("place >= %d AND place NOT IN (SELECT place FROM moved)", c.From)
	full := in + "." + table
	switch table {
	case "transfers", "attempts", "decisions":
		return "(SELECT * FROM " + full + " WHERE " + known + ")"
	case "ruled_out":
		return "(SELECT * FROM " + full + " WHERE seq IN (SELECT seq FROM " + in + ".decisions WHERE " + known + "))"
	}
	column := "seq"
	if table == "gaps" {
		column = "first"
	}
	return fmt.Sprintf("(SELECT * FROM %s WHERE bucket = 'transfers' AND %s BETWEEN %d AND %d)", full, column, c.From, c.At)
}

func one(ctx context.Context, db querier, query string, into any) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into); err != nil {
			return err
		}
	}
	return rows.Err()
}

func some(ctx context.Context, db querier, query string, into *[]string) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return err
		}
		*into = append(*into, key)
	}
	return rows.Err()
}
