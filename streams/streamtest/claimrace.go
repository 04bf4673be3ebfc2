package streamtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/landfall/landfall/events"
)

const (
	claimers     = 64
	claimerConns = 4
)

// token is what the claimers race for, and the sequence each of them has seen as newest.
type token struct {
	key      string
	reserved uint64
}

// claimInput is one operation on one token: a claim, or the look at the log afterwards.
type claimInput struct {
	token   int
	claimer int // 0: the look at the log
}

// claimModel is a token as a register that compare-and-swap fills once. The state is its
// claimer, 0 for none; the output is that as well, for a claim who won it, if it did.
var claimModel = porcupine.Model{
	Partition: partitionByToken,
	Init:      func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		holder, claimer, said := state.(int), input.(claimInput).claimer, output.(int)
		switch {
		case claimer == 0:
			return said == holder, holder
		case holder == 0:
			return said == claimer, claimer
		default:
			return said == 0, holder
		}
	},
	DescribeOperation: func(input, output any) string {
		in := input.(claimInput)
		return fmt.Sprintf("token %d: claimer %d -> %v", in.token, in.claimer, output)
	},
}

func partitionByToken(history []porcupine.Operation) [][]porcupine.Operation {
	byToken := map[int][]porcupine.Operation{}
	for _, op := range history {
		n := op.Input.(claimInput).token
		byToken[n] = append(byToken[n], op)
	}
	out := make([][]porcupine.Operation, 0, len(byToken))
	for _, ops := range byToken {
		out = append(out, ops)
	}
	return out
}

// claimRace: 64 claimers over 4 connections, each believing that it holds the session,
// race for every token. Each token has exactly one winner, the log agrees with what the
// claimers were told, and the whole is linearizable.
func claimRace(t *testing.T, s Store, f Features) {
	conns := make([]Conn, claimerConns)
	for i := range conns {
		conns[i] = s.Connect(t)
	}
	r := &race{conns: conns, tokens: reserveTokens(t, conns, f.Tokens)}
	r.run(t)
	r.look(t)
	wins := make([]int, len(r.tokens))
	for _, op := range r.history {
		if in := op.Input.(claimInput); in.claimer != 0 && op.Output.(int) != 0 {
			wins[in.token]++
		}
	}
	for i, n := range wins {
		if n != 1 {
			t.Errorf("token %d has %d winners", i, n)
		}
	}
	if !porcupine.CheckOperations(claimModel, r.history) {
		t.Error("the history of claims is not linearizable")
	}
}

func reserveTokens(t *testing.T, conns []Conn, n int) []token {
	t.Helper()
	tokens := make([]token, n)
	var wg sync.WaitGroup
	for lane := range 16 {
		wg.Go(func() {
			for i := lane; i < n; i += 16 {
				key := newTransfer()
				seq, err := settle(t.Context(), conns[lane%len(conns)], Fact(t, key, 0, &events.Requested{}))
				if err != nil {
					t.Errorf("reserve token %d: %v", i, err)
				}
				tokens[i] = token{key: key, reserved: seq}
			}
		})
	}
	wg.Wait()
	return tokens
}

// race is one run and its history. Order is counted, not timed.
type race struct {
	conns   []Conn
	tokens  []token
	clock   atomic.Int64
	mu      sync.Mutex
	history []porcupine.Operation
}

func (r *race) run(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	lines := make([]sync.WaitGroup, len(r.tokens)) // where all claimers wait for each other
	for i := range lines {
		lines[i].Add(claimers)
	}
	var wg sync.WaitGroup
	for n := 1; n <= claimers; n++ {
		wg.Go(func() {
			source := Source(events.SourceEdge, events.HostID(fmt.Sprintf("claimer-%d", n)))
			for i, tok := range r.tokens {
				m := FactBy(t, source, tok.key, tok.reserved, &events.Claimed{Attempt: 1, Dispatcher: source.ID, Incarnation: source.Incarnation})
				lines[i].Done()
				lines[i].Wait()
				r.claim(ctx, t, i, n, m)
			}
		})
	}
	wg.Wait()
}

// claim is one operation; what is in flight or unknown is asked again until it is known.
func (r *race) claim(ctx context.Context, t *testing.T, i, n int, m events.Message) {
	called := r.clock.Add(1)
	_, err := settle(ctx, r.conns[n%len(r.conns)], m)
	returned := r.clock.Add(1)
	said := n
	if err != nil {
		said = 0
		if failed, ok := errors.AsType[*events.AppendError](err); !ok || failed.Reason != events.Conflict {
			t.Errorf("claimer %d, token %d: %v", n, i, err)
		}
	}
	r.note(porcupine.Operation{ClientId: n, Input: claimInput{token: i, claimer: n}, Call: called, Output: said, Return: returned})
}

func (r *race) note(op porcupine.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, op)
}

// look reads who claimed each token from the log, which must hold one claim of each.
func (r *race) look(t *testing.T) {
	t.Helper()
	index := make(map[string]int, len(r.tokens))
	for i, tok := range r.tokens {
		index[tok.key] = i
	}
	holders := make([][]int, len(r.tokens))
	for _, record := range stored(t, r.conns[0], events.Transfers) {
		i, mine := index[record.Key]
		if !mine {
			continue
		}
		e, refusal := events.Open(keyring, record)
		if refusal != nil {
			t.Errorf("record %d: %v", record.Seq, refusal)
		}
		if f, ok := e.Fact.(*events.Claimed); ok {
			var n int
			if _, err := fmt.Sscanf(string(f.Dispatcher), "claimer-%d", &n); err != nil {
				t.Errorf("record %d is claimed by %s", record.Seq, f.Dispatcher)
			}
			holders[i] = append(holders[i], n)
		}
	}
	for i, of := range holders {
		if len(of) != 1 {
			t.Fatalf("the log holds %d claims of token %d", len(of), i)
		}
		now := r.clock.Add(1)
		r.note(porcupine.Operation{ClientId: 0, Input: claimInput{token: i}, Call: now, Output: of[0], Return: r.clock.Add(1)})
	}
}
