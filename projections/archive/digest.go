package archive

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"strings"
)

// content are the tables that two files of the same facts agree on, each with its key.
var content = []struct {
	name string
	key  []string
}{
	{"transfers", []string{"place"}},
	{"attempts", []string{"place", "n"}},
	{"decisions", []string{"seq"}},
	{"ruled_out", []string{"code", "seq"}},
	{"refusals", []string{"bucket", "seq"}},
	{"quarantined", []string{"bucket", "seq"}},
	{"gaps", []string{"bucket", "first"}},
}

// Digest is a hash over every row that a file answers with: two files that were folded from
// the same facts by the same version have the same. In lower-case hex.
func (r *Reader) Digest(ctx context.Context) (string, error) {
	sum := sha256.New()
	for _, t := range content {
		columns, err := columnsOf(ctx, r.conn, t.name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s\n", t.name)
		rows, err := r.conn.QueryContext(ctx, "SELECT quote("+strings.Join(columns, ") || ',' || quote(")+") FROM "+t.name+" ORDER BY "+strings.Join(t.key, ", "))
		if err != nil {
			return "", err
		}
		var line sql.RawBytes
		for rows.Next() {
			if err := rows.Scan(&line); err != nil {
				return "", err
			}
			sum.Write(line)
			sum.Write([]byte{'\n'})
		}
		if err := rows.Err(); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// columnsOf are the columns of a table, in their order.
func columnsOf(ctx context.Context, db querier, table string) ([]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT * FROM "+table+" LIMIT 0")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return rows.Columns()
}
