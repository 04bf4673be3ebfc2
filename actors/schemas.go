package actors

import (
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// warnOfSchemas says once of each host that it writes a wire version which this build does not
// read, and that it does again. A backend that does is no destination (SCHEMA_RANGE). Of the
// sweep's goroutine only.
func (d *Dispatcher) warnOfSchemas(f *projections.Fleet) {
	strangers := map[events.Source]int{}
	look := func(kind events.SourceKind, id events.HostID, schema int, what string) {
		host := events.Source{Kind: kind, ID: id}
		before, told := d.strangers[host]
		refusal := events.CheckSchema(schema)
		switch {
		case refusal == nil && told:
			d.logger.Info("a host writes a wire version again that this build reads", "host", id, "version", schema)
		case refusal != nil:
			strangers[host] = schema
			if !told || before != schema {
				d.logger.Warn("a host writes another wire version: "+what+" until one of the two is upgraded", "host", id, "code", refusal.Code, "detail", refusal.Detail)
			}
		}
	}
	for _, b := range f.Backends {
		look(events.SourceBackend, b.Server, b.Schema, "nobody is sent there")
	}
	for _, p := range f.Proxies {
		look(events.SourceEdge, p.Proxy, p.Schema, "what it writes may not be understood")
	}
	d.strangers = strangers
}
