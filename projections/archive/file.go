package archive

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/landfall/landfall/events"
)

//go:embed schema.sql
var schema string

//go:embed indexes.sql
var indexes string

// Identity says what a file is made of. Files of different identities have nothing in common.
type Identity struct {
	Network     string `json:"network"`
	Incarnation string `json:"incarnation"` // of the stream of transfers
	Fold        int    `json:"fold"`
}

// File is a generation that is open for writing. It has one writer: whoever opened it last.
type File struct {
	Path string
	Identity

	db    *sql.DB
	epoch int64
}

// ErrFenced is returned to a writer when another one has taken the file over.
var ErrFenced = errors.New("another process writes this archive now")

// Create makes an empty file. It fails when there is one.
func Create(ctx context.Context, path string, id Identity) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("archive %s: %w", path, fs.ErrExist)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	draft := path + ".new"
	_ = os.Remove(draft) // of a process that ended right here
	db, err := openDB(draft, "rwc")
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, schema)
	if err == nil {
		_, err = db.ExecContext(ctx, "INSERT INTO archive VALUES (1, ?, ?, ?, 0, '', 0, '', 0, '')", id.Network, id.Incarnation, id.Fold)
	}
	if err == nil {
		_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	}
	if err = errors.Join(err, db.Close()); err == nil {
		err = os.Chmod(draft, 0o600)
	}
	if err == nil {
		err = os.Rename(draft, path)
	}
	if err != nil {
		_ = os.Remove(draft)
		return fmt.Errorf("make archive %s: %w", path, err)
	}
	return syncDir(filepath.Dir(path))
}

// Open opens a file for writing, and fences off whoever wrote it before. writer is who opens
// it, for people. Close must be called.
func Open(ctx context.Context, path, writer string) (*File, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	db, err := openDB(path, "rw")
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, db: db}
	err = db.QueryRowContext(ctx, "UPDATE archive SET epoch = epoch + 1, writer = ? RETURNING network, incarnation, fold, epoch", writer).
		Scan(&f.Network, &f.Incarnation, &f.Fold, &f.epoch)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("archive %s: %w", path, err), db.Close())
	}
	return f, nil
}

// Close ends the connections. What lies beside the file is put into it, so that the file
// alone is the archive.
func (f *File) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err := f.db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return errors.Join(err, f.db.Close())
}

// openDB opens a file in write-ahead mode: readers do not wait for the writer. A power cut may
// take the last transactions, each whole; the log has their facts.
func openDB(path, mode string) (*sql.DB, error) {
	q := url.Values{"mode": {mode}, "_pragma": {
		"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(NORMAL)", "cache_size(-16384)", "temp_store(FILE)", "wal_autocheckpoint(4000)",
	}}
	db, err := sql.Open("sqlite", uri(path)+"?"+q.Encode())
	if err != nil {
		return nil, fmt.Errorf("archive %s: %w", path, err)
	}
	db.SetMaxIdleConns(2)
	return db, nil
}

// uri is a path as SQLite reads it in a URI.
func uri(path string) string {
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
}

// syncDir makes names durable.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the archive's own directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Position is how far a bucket is folded.
type Position struct {
	Bucket      events.Bucket  `json:"bucket"`
	Incarnation string         `json:"incarnation"`
	Begins      uint64         `json:"begins"` // the first sequence that could be folded
	Seq         uint64         `json:"seq"`
	ID          events.EventID `json:"id"`
	Stored      time.Time      `json:"stored"` // of the fact at Seq; zero: none
	Facts       uint64         `json:"facts"`  // how many were read
}

// querier is a database, or one transaction of it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func readPositions(ctx context.Context, db querier) (map[events.Bucket]Position, error) {
	rows, err := db.QueryContext(ctx, "SELECT bucket, incarnation, begins, seq, id, stored, facts FROM positions")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[events.Bucket]Position{}
	for rows.Next() {
		var p Position
		var id string
		var stored int64
		if err := rows.Scan(&p.Bucket, &p.Incarnation, &p.Begins, &p.Seq, &id, &stored, &p.Facts); err != nil {
			return nil, err
		}
		if err := p.ID.UnmarshalText([]byte(id)); err != nil {
			return nil, err
		}
		if stored > 0 {
			p.Stored = time.UnixMilli(stored).UTC()
		}
		out[p.Bucket] = p
	}
	return out, rows.Err()
}

func readGaps(ctx context.Context, db querier) (out []Gap, err error) {
	rows, err := db.QueryContext(ctx, "SELECT bucket, first, last FROM gaps ORDER BY bucket, first")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var g Gap
		if err := rows.Scan(&g.Bucket, &g.First, &g.Last); err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	return out, rows.Err()
}

// statements are the SQL statements of a file, without comments.
func statements(text string) []string {
	var clean strings.Builder
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "--")
		clean.WriteString(strings.TrimRight(code, " \n") + "\n")
	}
	var out []string
	for s := range strings.SplitSeq(clean.String(), ";") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
