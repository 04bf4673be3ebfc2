package main

import (
	"context"
	"fmt"
	"time"

	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections/archive"
)

// viewOf is the name of a host's archive in the log.
func viewOf(host string) string { return "archive." + host }

// makeKeepers makes those that keep the archives of this process's hosts.
func (c *crew) makeKeepers(ctx context.Context) error {
	self := c.host.self
	for id, x := range map[string]network.Host{self.ServerID: self.Server, self.ProxyID: self.Proxy} {
		if id == "" || x.Archive == "" {
			continue
		}
		st, err := c.store.as(ctx, events.HostID(id), x)
		if err != nil {
			return err
		}
		dir := archive.Directory(c.host.net.File(x.Archive))
		log := c.host.log.With("archive", string(dir))
		c.keepers = append(c.keepers, archive.NewKeeper(archive.KeeperConfig{
			Dir: dir, View: viewOf(id), Network: c.host.net.Network.Name, Writer: fmt.Sprintf("host %s since %s", id, time.Now().UTC().Format(timeForm)),
			Log: st, NewID: newID, Keys: c.host.keys, Logger: log,
			Changed: func(k archive.Kept) { log.Info("the archive is kept", "answers", k.Live, "written", k.Files) },
		}))
	}
	return nil
}
