//go:build !linux

package main

import "os/exec"

func dieWithTheTest(*exec.Cmd) {}
