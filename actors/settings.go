package actors

import (
	"context"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Settings is the part of a host's configuration that operators can replace for the whole
// network. The actors of one process share it. The zero value: this host has none.
type Settings struct {
	// Adopt takes in the newest version that stands in the log; one without a text says that the
	// host's own file holds again. It is called with the same version more than once, and may be
	// called concurrently. All that is decided once it has returned goes by that version, or by
	// what held before if this host cannot obey it. It must not wait for anybody.
	Adopt func(Pushed)
	// Beat says in the heartbeat what the host goes by.
	Beat func() events.ConfigBeat
}

// Pushed is a version of the changeable configuration, as operators pushed it.
type Pushed struct {
	Seq            uint64 // in control; 0: nobody has pushed any
	Text, Who, Why string // see events.ConfigSet
}

func (s Settings) adopt(p Pushed) {
	if s.Adopt != nil {
		s.Adopt(p)
	}
}

func (s Settings) beat() *events.ConfigBeat {
	if s.Beat == nil {
		return nil
	}
	b := s.Beat()
	return &b
}

func pushedOf(c projections.Controls) Pushed {
	if c.Config == nil {
		return Pushed{}
	}
	return Pushed{Seq: c.ConfigSeq, Text: c.Config.Text, Who: c.Config.Who, Why: c.Config.Why}
}

// obey hands on what operators pushed, once a fold that sees the whole log has it.
func (d *Dispatcher) obey(c projections.Change) {
	now := d.view.Controls()
	if _, pushed := c.Event.Fact.(*events.ConfigSet); !c.Live && (!pushed || now.ConfigSeq != c.Seq) {
		return
	}
	d.cfg.Settings.adopt(pushedOf(now))
	select {
	case d.pushed <- struct{}{}:
	default:
	}
}

// answerSettings tells a backend, which does not see the log, what operators pushed.
func (d *Dispatcher) answerSettings(ctx context.Context, _ events.HostID, _ events.SettingsAsk) events.SettingsAnswer {
	last, found, err := d.log.LastOf(ctx, events.Control, events.ConfigKey)
	if err == nil && found {
		err = d.view.WaitFolded(ctx, events.Control, last.Seq)
	}
	if err != nil {
		return refuseSettings(transportDown(err))
	}
	p := pushedOf(d.view.Controls())
	return events.SettingsAnswer{Code: events.OK, Seq: p.Seq, Text: p.Text, Who: p.Who, Why: p.Why}
}

func refuseSettings(r *events.Refusal) events.SettingsAnswer {
	return events.SettingsAnswer{Code: r.Code, Detail: r.Detail}
}

// spreadEvery is how often dispatchers look which hosts go by another configuration.
const spreadEvery = time.Second

// spread tells backends of a version that they do not obey yet, and operators of hosts that
// go by another configuration than this one.
func (d *Dispatcher) spread(ctx context.Context) error {
	var behind lagging
	for {
		if w, newest := d.watch(), d.view.Controls().ConfigSeq; d.view.Ready() {
			for _, id := range behind.due(w, newest) {
				d.background(func(ctx context.Context) { d.tellOfConfig(ctx, id) })
			}
			d.warnOfDifferences(w, newest)
		}
		look := time.NewTimer(spreadEvery)
		select {
		case <-look.C:
		case <-d.pushed:
		case <-ctx.Done():
			look.Stop()
			return ctx.Err()
		}
		look.Stop()
	}
}

// tellOfConfig need not be heard: a backend that does not obey afterwards is told again.
func (d *Dispatcher) tellOfConfig(ctx context.Context, id events.HostID) {
	ctx, cancel := context.WithTimeout(ctx, spreadEvery)
	defer cancel()
	_, err := ask[events.Answer](ctx, d.Identity, d.bus, events.ToBackend(id, events.VerbConfig), events.ConfigAsk{Seq: d.view.Controls().ConfigSeq})
	if err != nil {
		d.logger.Debug("not told of the pushed configuration", "server", id, "error", err)
	}
}

// lagging counts for each backend how often it was seen to obey another version.
type lagging map[events.HostID]int

// due lists the backends that this dispatcher is to tell now. The first turn is that of one
// dispatcher; each of the others waits for a look longer than the one before it.
func (l *lagging) due(w watch, newest uint64) (due []events.HostID) {
	next := lagging{}
	for _, b := range w.fleet.Backends {
		c := b.Config
		if c == nil || c.Pushed == newest || newest > 0 && c.Refused == newest || w.now.Sub(b.Seen) > w.timing.Stale {
			continue
		}
		next[b.Server] = (*l)[b.Server] + 1
		if next[b.Server] > w.rank([]byte(b.Server)) {
			due = append(due, b.Server)
		}
	}
	*l = next
	return due
}

// settingsPatience is how long a backend that starts waits for word of the pushed
// configuration. Dispatchers of an older version have none to give.
const settingsPatience = 5 * time.Second

// followSettings asks for the pushed configuration, now and whenever it is told of a newer
// one. settled is called once the first answer is obeyed, or none has come for a while.
func (b *Backend) followSettings(ctx context.Context, settled func()) error {
	if b.cfg.Settings.Adopt == nil || b.cfg.Settings.Beat == nil {
		settled()
		return nil
	}
	late := time.AfterFunc(settingsPatience, func() {
		b.logger.Warn("no dispatcher says what configuration was pushed: this host goes by its own file until one does")
		settled()
	})
	defer late.Stop()
	for b.obeyNewest(ctx) {
		late.Stop()
		settled()
		b.beatNow()
		select {
		case <-b.retune:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// obeyNewest asks until a dispatcher answers; false: ctx has ended.
func (b *Backend) obeyNewest(ctx context.Context) bool {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		p, err := b.askSettings(ctx)
		if err == nil {
			b.cfg.Settings.Adopt(p)
			return true
		}
		b.logger.Debug("the pushed configuration is not known yet", "error", err)
		if !sleep(ctx, pause) {
			return false
		}
	}
}

func (b *Backend) askSettings(ctx context.Context) (Pushed, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	l := b.life.Load()
	a, err := ask[events.SettingsAnswer](ctx, l.Identity, b.cfg.Bus, events.AskOf(l.Source.ID, events.VerbSettings), events.SettingsAsk{Have: b.cfg.Settings.beat().Pushed})
	if err == nil && a.Code != events.OK {
		err = events.Refuse(a.Code, a.Detail)
	}
	return Pushed{Seq: a.Seq, Text: a.Text, Who: a.Who, Why: a.Why}, err
}

// answerConfig hears that there is a newer configuration.
func (b *Backend) answerConfig() events.Answer {
	select {
	case b.retune <- struct{}{}:
	default:
	}
	return events.Answer{Code: events.OK}
}
