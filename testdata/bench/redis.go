package main

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed claim.lua
var claimLua string

var claimScript = redis.NewScript(claimLua)

// redisTokens are hashes, claimed by a script; with audit each claim is also an entry of a stream, in the same script.
type redisTokens struct {
	c      *redis.Client
	prefix string
	audit  bool
}

func openRedis(fsync string, audit bool) func(context.Context, *env) (system, error) {
	return func(ctx context.Context, e *env) (system, error) {
		addr, err := e.redisServer(ctx, fsync)
		if err != nil {
			return nil, err
		}
		c := redis.NewClient(&redis.Options{Addr: addr, PoolSize: maxClaimers})
		e.onClose(c.Close)
		s := &redisTokens{c: c, prefix: fmt.Sprintf("tok%t:", audit), audit: audit}
		return s, claimScript.Load(ctx, c).Err()
	}
}

func (s *redisTokens) stream() string { return s.prefix + "audit" }

func (s *redisTokens) fill(ctx context.Context, tokens []*token) error {
	p := s.c.Pipeline()
	for _, t := range tokens {
		p.HSet(ctx, s.prefix+t.id(), "state", "PENDING", "player", t.player.String(), "server", string(reservation.Server))
		if p.Len() == 1000 {
			if _, err := p.Exec(ctx); err != nil {
				return err
			}
		}
	}
	_, err := p.Exec(ctx)
	return err
}

func (s *redisTokens) claim(ctx context.Context, claimer int, t *token) (bool, error) {
	audit, record := "0", ""
	if s.audit {
		audit, record = "1", string(recordOf(claimer))
	}
	n, err := claimScript.EvalSha(ctx, s.c, []string{s.prefix + t.id(), s.stream()}, claimer, audit, record).Int()
	return n == 1, err
}

func (s *redisTokens) claims(ctx context.Context, seen func(id string, claimer int)) error {
	if s.audit {
		return s.audited(ctx, seen)
	}
	keys := s.c.Scan(ctx, 0, s.prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		by, err := s.c.HMGet(ctx, keys.Val(), "state", "by").Result()
		if err != nil {
			return err
		}
		if by[0] != "CLAIMED" {
			continue
		}
		claimer, err := strconv.Atoi(fmt.Sprint(by[1]))
		if err != nil {
			return err
		}
		seen(strings.TrimPrefix(keys.Val(), s.prefix), claimer)
	}
	return keys.Err()
}

func (s *redisTokens) audited(ctx context.Context, seen func(id string, claimer int)) error {
	for from := "-"; ; {
		page, err := s.c.XRangeN(ctx, s.stream(), from, "+", 1000).Result()
		if err != nil || len(page) == 0 {
			return err
		}
		for _, entry := range page {
			claimer, err := strconv.Atoi(fmt.Sprint(entry.Values["by"]))
			if err != nil {
				return err
			}
			seen(strings.TrimPrefix(fmt.Sprint(entry.Values["token"]), s.prefix), claimer)
			from = "(" + entry.ID
		}
	}
}
