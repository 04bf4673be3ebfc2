package archive

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/landfall/landfall/events"
)

// Reader is a file that is only read: nothing that is asked of it can change it, another file,
// or anything else. It does not hold up the writer. For one goroutine.
type Reader struct {
	About

	conn *sql.Conn
	db   *sql.DB
}

// About is what a file says of itself, as of when it was opened.
type About struct {
	Identity

	Path      string                     `json:"path"`
	Positions map[events.Bucket]Position `json:"positions"`
	Gaps      []Gap                      `json:"gaps,omitempty"`
	Built     bool                       `json:"built"` // it has caught up with the log at least once
	Writer    string                     `json:"writer"`
	Halted    *Halted                    `json:"halted,omitempty"`
}

// Halted says where the folding stopped.
type Halted struct {
	Bucket events.Bucket `json:"bucket"`
	Seq    uint64        `json:"seq"`
	Reason string        `json:"reason"`
}

// maxText bounds any one value that an expression may build, in bytes.
const maxText = 16 << 20

// OpenReader opens a file for reading. Close must be called.
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	q := url.Values{"mode": {"ro"}, "_query_only": {"1"}, "_pragma": {"busy_timeout(5000)", "temp_store(FILE)", "cache_size(-32768)"}}
	base, err := sqlite.NewConnector(uri(path) + "?" + q.Encode())
	if err != nil {
		return nil, fmt.Errorf("archive %s: %w", path, err)
	}
	r := &Reader{About: About{Path: path}, db: sql.OpenDB(guarded{base})}
	if r.conn, err = r.db.Conn(ctx); err == nil {
		err = r.look(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("archive %s: %w", path, err), r.Close())
	}
	return r, nil
}

// Close ends the connection.
func (r *Reader) Close() error {
	var err error
	if r.conn != nil {
		err = r.conn.Close()
	}
	return errors.Join(err, r.db.Close())
}

// look reads what the file says of itself.
func (r *Reader) look(ctx context.Context) error {
	for limit, to := range map[int]int{sqlite3.SQLITE_LIMIT_LENGTH: maxText, sqlite3.SQLITE_LIMIT_ATTACHED: 1} {
		if _, err := sqlite.Limit(r.conn, limit, to); err != nil {
			return err
		}
	}
	var h Halted
	err := r.conn.QueryRowContext(ctx, "SELECT network, incarnation, fold, built, writer, halted_bucket, halted_seq, halted_reason FROM archive").
		Scan(&r.Network, &r.Incarnation, &r.Fold, &r.Built, &r.Writer, &h.Bucket, &h.Seq, &h.Reason)
	if err != nil {
		return err
	}
	if h.Seq > 0 {
		r.Halted = &h
	}
	if r.Positions, err = readPositions(ctx, r.conn); err != nil {
		return err
	}
	r.Gaps, err = readGaps(ctx, r.conn)
	return err
}

// guarded opens connections on which nothing but reading can be compiled.
type guarded struct{ driver.Connector }

func (g guarded) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := g.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.(sqlite.AuthorizerRegisterer).RegisterAuthorizer(onlyReads); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func onlyReads(action sqlite.AuthorizerActionCode, _, name, _, _ string) sqlite.AuthorizerReturnCode {
	switch action {
	case sqlite.AuthSelect, sqlite.AuthRead, sqlite.AuthRecursive:
		return sqlite.AuthorizerOK
	case sqlite.AuthFunction:
		if strings.EqualFold(name, "load_extension") {
			return sqlite.AuthorizerDeny
		}
		return sqlite.AuthorizerOK
	default:
		return sqlite.AuthorizerDeny
	}
}

// Question is a statement and its bounds.
type Question struct {
	SQL  string
	Args []any
	// Rows is how many rows are given at most; Time how long it may take.
	Rows int
	Time time.Duration
}

// ErrTooLong is returned when a question was not answered in its time.
var ErrTooLong = errors.New("it took too long")

// ErrOnlyReads is returned for a statement that does anything but read.
var ErrOnlyReads = errors.New("an archive is only read: want a SELECT")

// Ask gives the rows of an answer, each as its columns name them. more: there were rows beyond
// the bound.
func (r *Reader) Ask(ctx context.Context, q Question, columns func([]string) error, row func([]any) error) (more bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, q.Time, ErrTooLong)
	defer cancel()
	defer func() {
		var refused *sqlite.Error
		switch {
		case err == nil:
		case errors.Is(context.Cause(ctx), ErrTooLong):
			err = fmt.Errorf("%w: more than %s", ErrTooLong, q.Time)
		case errors.As(err, &refused) && refused.Code()&0xff == sqlite3.SQLITE_AUTH:
			err = ErrOnlyReads
		}
	}()
	rows, err := r.conn.QueryContext(ctx, q.SQL, q.Args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return false, err
	}
	if err := columns(names); err != nil {
		return false, err
	}
	values, into := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for given := 0; rows.Next(); given++ {
		if given == q.Rows {
			return true, nil
		}
		if err := rows.Scan(into...); err != nil {
			return false, err
		}
		if err := row(values); err != nil {
			return false, err
		}
	}
	return false, rows.Err()
}
