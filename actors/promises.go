package actors

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
)

// pool holds the verified coordinates of one life of a backend, and the promises made of
// them. A coordinate is in exactly one place: ready, promised, or gone (placed or unsafe).
type pool struct {
	mu       sync.Mutex
	regions  []Region
	ready    map[string][]events.Position
	promises map[events.Token]*promise
	inHand   int // taken, and not yet promised, put back or dropped
	number   uint64
	dry      error         // why the last search found nothing, nil when it did
	taken    chan struct{} // asks the refill to look again
	tally    Tally
}

// Tally counts what became of the coordinates of one life. At any moment
// Found = Ready + Promised + Placed + Dropped, beside those that are just being promised.
type Tally struct{ Found, Ready, Promised, Placed, Dropped int }

// promise is one coordinate held for one player.
type promise struct {
	token  events.Token
	player Player
	region string
	at     events.Position
	number uint64
	spent  bool // the arrival is recorded: the coordinate is the player's
	timer  *time.Timer
}

func newPool(regions []Region) *pool {
	return &pool{
		regions: regions, ready: map[string][]events.Position{}, promises: map[events.Token]*promise{}, taken: make(chan struct{}, 1),
	}
}

// take pops a coordinate: of the region asked for, else of the fitting one that has most. It
// is then in the caller's hand until put, dropped or promise. OK, or FULL when seats players
// are promised a place already (in hand counts too), or NO_COORDINATE.
func (p *pool) take(region, world string, seats int) (string, events.Position, events.Code) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.promises)+p.inHand >= seats {
		return "", events.Position{}, events.Full
	}
	best := ""
	for _, r := range p.regions {
		fits := (region == "" || region == r.Name) && (world == "" || world == r.World)
		if fits && len(p.ready[r.Name]) > len(p.ready[best]) {
			best = r.Name
		}
	}
	list := p.ready[best]
	if len(list) == 0 {
		return "", events.Position{}, events.NoCoordinate
	}
	p.ready[best] = list[1:]
	p.inHand++
	p.nudge()
	return best, list[0], events.OK
}

// keeps tells that something fitting is ready.
func (p *pool) keeps(region, world string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.regions {
		if (region == "" || region == r.Name) && (world == "" || world == r.World) && len(p.ready[r.Name]) > 0 {
			return true
		}
	}
	return false
}

// adopt takes a coordinate into the caller's hand that was found for one request.
func (p *pool) adopt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tally.Found++
	p.inHand++
}

// put makes a taken coordinate ready again.
func (p *pool) put(region string, at events.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inHand--
	p.ready[region] = append(p.ready[region], at)
}

// found takes in a newly found coordinate.
func (p *pool) found(region string, at events.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready[region] = append(p.ready[region], at)
	p.tally.Found++
	p.dry = nil
}

// dropped counts a taken coordinate that is no longer good.
func (p *pool) dropped() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inHand--
	p.tally.Dropped++
	p.nudge()
}

func (p *pool) nudge() {
	select {
	case p.taken <- struct{}{}:
	default:
	}
}

// Tally counts the coordinates.
func (p *pool) count() Tally {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tally
	for _, list := range p.ready {
		t.Ready += len(list)
	}
	for _, x := range p.promises {
		if !x.spent {
			t.Promised++
		}
	}
	return t
}

// promise binds a taken coordinate to a token for as long as it is held. A token that has a
// promise keeps that one, and the coordinate goes back: two dispatchers may ask for it at once.
func (p *pool) promise(token events.Token, player Player, region string, at events.Position, hold time.Duration) *promise {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inHand--
	x := p.promises[token]
	if x != nil {
		p.ready[region] = append(p.ready[region], at)
	} else {
		p.number++
		x = &promise{token: token, player: player, region: region, at: at, number: p.number}
		p.promises[token] = x
	}
	p.hold(x, hold)
	return x
}

// renew gives a promise that stands, and holds it anew: who asks again counts from now.
func (p *pool) renew(token events.Token, hold time.Duration) *promise {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.promises[token]
	if x != nil {
		p.hold(x, hold)
	}
	return x
}

// hold lets a promise end by itself after a while. It wants p.mu held.
func (p *pool) hold(x *promise, length time.Duration) {
	if x.spent {
		return
	}
	if x.timer != nil {
		x.timer.Stop()
	}
	var t *time.Timer
	t = time.AfterFunc(length, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if x.timer == t { // else it was held anew as this one went off
			p.end(x)
		}
	})
	x.timer = t
}

// giveBack ends a promise and makes its coordinate ready again, once. It reports whether
// there was one to give back.
func (p *pool) giveBack(token events.Token) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.promises[token]
	return x != nil && p.end(x)
}

// end wants p.mu held.
func (p *pool) end(x *promise) bool {
	if x.spent || p.promises[x.token] != x {
		return false
	}
	x.timer.Stop()
	delete(p.promises, x.token)
	p.ready[x.region] = append(p.ready[x.region], x.at)
	return true
}

// spend makes a promised coordinate the player's: it never becomes ready again. first tells
// that it was not the player's before, stands that the promise stands at all.
func (p *pool) spend(token events.Token) (first, stands bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.promises[token]
	if x == nil || x.spent {
		return false, x != nil
	}
	x.spent = true
	x.timer.Stop()
	p.tally.Placed++
	return true, true
}

// settle forgets a spent promise.
func (p *pool) settle(token events.Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.promises[token]; x != nil && x.spent {
		delete(p.promises, token)
		p.nudge()
	}
}

// held lists the tokens promised to a player.
func (p *pool) held(player events.PlayerID) []events.Token {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := []events.Token{}
	for token, x := range p.promises {
		if x.player.ID == player && !x.spent {
			out = append(out, token)
		}
	}
	return out
}

// outstanding counts the promises that are being made or have not been settled.
func (p *pool) outstanding() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.promises) + p.inHand
}

// beat gives what the heartbeat says of the pool. seats is how many players may still come.
func (p *pool) beat(seats int) (regions []events.RegionBeat, number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	regions = make([]events.RegionBeat, 0, len(p.regions))
	for _, r := range p.regions {
		kept := max(min(len(p.ready[r.Name]), seats), 0)
		regions = append(regions, events.RegionBeat{Name: r.Name, World: r.World, Kept: kept, Size: r.Keep})
	}
	return regions, p.number
}

// kept counts the ready coordinates of a region.
func (p *pool) kept(region string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ready[region])
}

// isDry tells that regions exist, nothing is ready, and the last search failed.
func (p *pool) isDry() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range p.ready {
		if len(list) > 0 {
			return false
		}
	}
	return len(p.regions) > 0 && p.dry != nil
}

// wanting gives a region that keeps fewer coordinates than it should, promised ones included.
func (p *pool) wanting() (Region, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.regions {
		n := len(p.ready[r.Name])
		for _, x := range p.promises {
			if x.region == r.Name && !x.spent {
				n++
			}
		}
		if n < r.Keep {
			return r, true
		}
	}
	return Region{}, false
}

// refill searches one coordinate at a time, as long as a region wants one, until ctx ends.
func (p *pool) refill(ctx context.Context, w World, logger *slog.Logger, changed func()) error {
	pause := time.Second
	for {
		r, wants := p.wanting()
		if !wants {
			select {
			case <-p.taken:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		at, err := w.Find(ctx, r)
		if err == nil {
			p.found(r.Name, at)
			pause = time.Second
			changed()
			continue
		}
		p.failed(err)
		if errors.Is(err, ErrDown) {
			pause = time.Second // the outage is told elsewhere; when it is over, places are wanted at once
		} else {
			logger.Warn("no safe coordinate found, trying again", "region", r.Name, "error", err, "in", pause)
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
		pause = min(2*pause, 30*time.Second)
	}
}

func (p *pool) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dry = err
}

// close stops the timers of a life that is over.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.promises {
		x.timer.Stop()
	}
}
