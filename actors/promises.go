package actors

import (
	"context"
	"errors"
	"fmt"
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
	inHand   map[string]int // by region: coordinates taken, and not yet promised, put back or dropped; "": seats for which one is looked for
	settled  int            // promises whose players stand on their coordinates
	number   uint64
	dry      error                // why the last search found nothing, nil when it did
	taken    chan struct{}        // asks the refill to look again
	longer   func() time.Duration // how much longer a promise stands that is due
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
		regions: regions, ready: map[string][]events.Position{}, inHand: map[string]int{}, promises: map[events.Token]*promise{}, taken: make(chan struct{}, 1),
		longer: func() time.Duration { return 0 },
	}
}

// seats are how many players may still come, as the game server was when so many promises had
// been settled: who has been settled since may not be counted among its players yet.
type seats struct{ free, settled int }

// arrived counts the promises settled so far. It is to be read before the players are counted.
func (p *pool) arrived() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.settled
}

// room tells that one more player may be promised a place; what is in hand counts too. It
// wants p.mu held.
func (p *pool) room(s seats) bool {
	return p.busy()+p.settled-s.settled < s.free
}

// busy counts the seats that are promised, or in somebody's hand. It wants p.mu held.
func (p *pool) busy() int {
	n := len(p.promises)
	for _, k := range p.inHand {
		n += k
	}
	return n
}

// take pops a coordinate: of the region asked for, else of the fitting one that has most. It
// is then in the caller's hand until put, dropped or promise. OK, or FULL, or NO_COORDINATE.
func (p *pool) take(region, world string, s seats) (string, events.Position, events.Code) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.room(s) {
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
	p.inHand[best]++
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

// sit takes a seat into the caller's hand, for a coordinate that is yet to be found: adopt or
// stand must follow. false: there is none.
func (p *pool) sit(s seats) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.room(s) {
		return false
	}
	p.inHand[""]++
	return true
}

// adopt counts the coordinate that was found for a seat: it is then in the caller's hand.
func (p *pool) adopt(region string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inHand[""]--
	p.inHand[region]++
	p.tally.Found++
}

// stand gives a seat back for which nothing was found.
func (p *pool) stand() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inHand[""]--
}

// put makes a taken coordinate ready again.
func (p *pool) put(region string, at events.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inHand[region]--
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
func (p *pool) dropped(region string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inHand[region]--
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
	p.inHand[region]--
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
		switch longer := p.longer(); {
		case x.timer != t: // it was held anew as this one went off
		case longer > 0:
			p.hold(x, longer)
		default:
			p.end(x)
		}
	})
	x.timer = t
}

// giveBack ends the promise of a number and makes its coordinate ready again, once. It
// reports whether there was one to give back: the token may have got another promise since.
func (p *pool) giveBack(token events.Token, number uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.promises[token]
	return x != nil && x.number == number && p.end(x)
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
// that it was not the player's before, stands that the promise of it stands at all: the token
// may have got another one since.
func (p *pool) spend(token events.Token, at events.Position) (first, stands bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.promises[token]
	if x == nil || x.at != at {
		return false, false
	}
	if x.spent {
		return false, true
	}
	x.spent = true
	x.timer.Stop()
	p.tally.Placed++
	p.nudge()
	return true, true
}

// settle forgets a spent promise.
func (p *pool) settle(token events.Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.promises[token]; x != nil && x.spent {
		delete(p.promises, token)
		p.settled++
		p.nudge()
	}
}

// held lists the tokens promised to a player; listed is the number of the last promise that it looked at.
func (p *pool) held(player events.PlayerID) (tokens []events.Token, listed uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tokens = []events.Token{}
	for token, x := range p.promises {
		if x.player.ID == player && !x.spent {
			tokens = append(tokens, token)
		}
	}
	return tokens, p.number
}

// outstanding counts the promises that are being made or have not been settled.
func (p *pool) outstanding() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy()
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

// wanting lists the regions that keep fewer coordinates than they should: those that are
// promised, or are just being promised, included.
func (p *pool) wanting() []Region {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Region
	for _, r := range p.regions {
		n := len(p.ready[r.Name]) + p.inHand[r.Name]
		for _, x := range p.promises {
			if x.region == r.Name && !x.spent {
				n++
			}
		}
		if n < r.Keep {
			out = append(out, r)
		}
	}
	return out
}

// refill searches one coordinate at a time, as long as a region wants one, until ctx ends. A
// region where none was found rests, and keeps no other one back.
func (p *pool) refill(ctx context.Context, w World, now func() time.Time, logger *slog.Logger, changed func()) error {
	rests := map[string]rest{}
	for ctx.Err() == nil {
		r, wait := nextSearch(p.wanting(), rests, now())
		if r == nil {
			p.await(ctx, wait)
			continue
		}
		at, err := findIn(ctx, w, *r)
		if err == nil {
			p.found(r.Name, at)
			delete(rests, r.Name)
			changed()
			continue
		}
		p.failed(err)
		x := rests[r.Name].longer(err, now())
		rests[r.Name] = x
		if !errors.Is(err, ErrDown) { // an outage is told elsewhere
			logger.Warn("no safe coordinate found, trying again", "region", r.Name, "error", err, "in", x.length)
		}
	}
	return ctx.Err()
}

// rest is how long, and until when, a region is not searched.
type rest struct {
	length time.Duration
	until  time.Time
}

// longer is the rest after another failure: 1 s, then twice as long each time, up to 30 s. When
// an outage is over, places are wanted at once.
func (x rest) longer(err error, now time.Time) rest {
	length := min(max(2*x.length, time.Second), 30*time.Second)
	if errors.Is(err, ErrDown) {
		length = time.Second
	}
	return rest{length: length, until: now.Add(length)}
}

// nextSearch gives the region to search now: of those that want one and do not rest the one that has
// not failed for longest. nil: none before wait has passed, or at all when wait is 0.
func nextSearch(wanting []Region, rests map[string]rest, now time.Time) (*Region, time.Duration) {
	var best *Region
	var wait time.Duration
	for i := range wanting {
		r := &wanting[i]
		left := rests[r.Name].until.Sub(now)
		switch {
		case left > 0 && (wait == 0 || left < wait):
			wait = left
		case left <= 0 && (best == nil || rests[r.Name].until.Before(rests[best.Name].until)):
			best = r
		}
	}
	return best, wait
}

// await waits until something was taken, or wait has passed when it is not 0, or ctx ends.
func (p *pool) await(ctx context.Context, wait time.Duration) {
	var over <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-p.taken:
	case <-over:
	case <-ctx.Done():
	}
}

// findIn looks for a coordinate of a region. One that lies in another world is none of it: a
// world is known by its own server's name for it, and by no other.
func findIn(ctx context.Context, w World, r Region) (events.Position, error) {
	at, err := w.Find(ctx, r)
	if err != nil || at.World == r.World {
		return at, err
	}
	_ = w.Forget(ctx, at) // what is left of it the next start of the world's adapter lets go
	return at, fmt.Errorf("%w: found in %q, but the region %s is in %q", ErrUnsafe, at.World, r.Name, r.World)
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
