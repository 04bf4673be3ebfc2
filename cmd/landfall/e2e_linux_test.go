package main

import (
	"os/exec"
	"syscall"
)

// dieWithTheTest keeps a test that was killed itself from leaving processes behind.
func dieWithTheTest(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
