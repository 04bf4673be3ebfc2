package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestUpOfARouter: it reads the log under a login that cannot write, and does not beat; every
// host says at its start what it is.
func TestUpOfARouter(t *testing.T) {
	s := newSite(t, strings.Replace(twoHosts(freePort(t)), "  proxy-2: {", "  proxy-2: { mode: router,", 1))
	carrier := s.up(t, "proxy-1")
	carrier.says(t, "msg=wired", "host=proxy-1", "carries the store", "edge for minecraft", "mode=participant", "dispatches=edge", "policy=weighted/", "heartbeatMs=1000", "triggers=[]")
	carrier.says(t, "msg=ready proxy=proxy-1")
	router := s.up(t, "proxy-2")
	router.says(t, "msg=wired", "host=proxy-2", "router for minecraft", "mode=router", "dispatches=none", "store=\"carried by proxy-1\"", "policy=none", "heartbeatMs=0")
	router.says(t, "store connected", "as=auditor.proxy-2")
	router.says(t, "msg=ready proxy=proxy-2")
	t.Setenv(envSecret, encoded(realSecret))
	o := until(t, func(o outcome) bool { return strings.Contains(o.stdout, "proxy-1") }, "state", "fleet", "--config", filepath.Join(s.dir, "network.yml"))
	if strings.Contains(o.stdout, "proxy-2") {
		t.Errorf("the router beats:\n%s", o.stdout)
	}
	router.stop(t)
}
