package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	claimSQL = `UPDATE %[1]s SET state = 'CLAIMED', claimer = $2 WHERE id = $1 AND state = 'PENDING'`
	auditSQL = `WITH won AS (` + claimSQL + ` RETURNING id) INSERT INTO %[1]s_audit (token, claimer, record) SELECT id, $2, $3 FROM won`
)

// postgresTokens are rows, claimed by a conditional update; with audit each claim is also a row of another table, in
// the same statement.
type postgresTokens struct {
	pool  *pgxpool.Pool
	table string
	audit bool
	sql   string
}

func openPostgres(synchronous string, audit bool) func(context.Context, *env) (system, error) {
	return func(ctx context.Context, e *env) (system, error) {
		dsn, err := e.postgresServer(ctx)
		if err != nil {
			return nil, err
		}
		cfg, err := pgxpool.ParseConfig(dsn)
		if err != nil {
			return nil, err
		}
		cfg.MaxConns = maxPostgres
		cfg.ConnConfig.RuntimeParams["synchronous_commit"] = synchronous
		pool, err := pgxpool.NewWithConfig(ctx, cfg)
		if err != nil {
			return nil, err
		}
		e.onClose(func() error { pool.Close(); return nil })
		s := &postgresTokens{pool: pool, table: fmt.Sprintf("tokens_%s_%t", synchronous, audit), audit: audit}
		if s.sql = fmt.Sprintf(claimSQL, s.table); audit {
			s.sql = fmt.Sprintf(auditSQL, s.table)
		}
		_, err = pool.Exec(ctx, fmt.Sprintf(`
			CREATE TABLE %[1]s (id uuid PRIMARY KEY, player uuid NOT NULL, server text NOT NULL, state text NOT NULL, claimer int);
			CREATE TABLE %[1]s_audit (n bigserial PRIMARY KEY, token uuid NOT NULL, claimer int NOT NULL, record bytea NOT NULL)`, s.table))
		return s, err
	}
}

// maxPostgres: three of four systems have a pool each, in one server.
const maxPostgres = maxClaimers / 4

func (s *postgresTokens) fill(ctx context.Context, tokens []*token) error {
	rows := pgx.CopyFromSlice(len(tokens), func(i int) ([]any, error) {
		t := tokens[i]
		return []any{t.id(), t.player.String(), string(reservation.Server), "PENDING"}, nil
	})
	_, err := s.pool.CopyFrom(ctx, pgx.Identifier{s.table}, []string{"id", "player", "server", "state"}, rows)
	return err
}

func (s *postgresTokens) claim(ctx context.Context, claimer int, t *token) (bool, error) {
	args := []any{t.id(), claimer}
	if s.audit {
		args = append(args, recordOf(claimer))
	}
	done, err := s.pool.Exec(ctx, s.sql, args...)
	return done.RowsAffected() == 1, err
}

func (s *postgresTokens) claims(ctx context.Context, seen func(id string, claimer int)) error {
	from := fmt.Sprintf(`SELECT id::text, claimer FROM %s WHERE state = 'CLAIMED'`, s.table)
	if s.audit {
		from = fmt.Sprintf(`SELECT token::text, claimer FROM %s_audit`, s.table)
	}
	rows, err := s.pool.Query(ctx, from)
	if err != nil {
		return err
	}
	var id string
	var claimer int
	_, err = pgx.ForEachRow(rows, []any{&id, &claimer}, func() error { seen(id, claimer); return nil })
	return err
}
