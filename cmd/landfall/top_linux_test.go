package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// openTerminal makes a pseudo terminal of 80 columns and 24 lines: its outer end, where a person
// sits, and its inner one, where the program is.
func openTerminal(t *testing.T) (outer, inner *os.File) {
	t.Helper()
	outer, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var unlock, number int32
	terminalCall(t, outer, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	terminalCall(t, outer, syscall.TIOCGPTN, unsafe.Pointer(&number))
	size := [4]uint16{24, 80}
	terminalCall(t, outer, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	inner, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = outer.Close() })
	return outer, inner
}

func terminalCall(t *testing.T, f *os.File, what uintptr, arg unsafe.Pointer) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), what, uintptr(arg)); errno != 0 {
		t.Fatalf("terminal: %v", errno)
	}
}

// modesOf are the settings of a terminal.
func modesOf(t *testing.T, f *os.File) (modes syscall.Termios) {
	t.Helper()
	terminalCall(t, f, syscall.TCGETS, unsafe.Pointer(&modes))
	return modes
}

// The program on a real terminal: it shows the network, ends with status 0 however it is asked
// to, and leaves the terminal as it was.
func TestTopLeavesTheTerminalAsItWas(t *testing.T) {
	dir, _ := filled(t, "300")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const alternate, back, shown = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"
	for _, c := range []struct {
		name, terminal string
		end            func(outer *os.File, p *os.Process) error
	}{
		{"q", "xterm-256color", func(outer *os.File, _ *os.Process) error { _, err := outer.WriteString("q"); return err }},
		{"Ctrl-C", "xterm-256color", func(outer *os.File, _ *os.Process) error { _, err := outer.WriteString("\x03"); return err }},
		{"SIGTERM", "xterm-256color", func(_ *os.File, p *os.Process) error { return p.Signal(syscall.SIGTERM) }},
		{"SIGTERM on a dumb one", "dumb", func(_ *os.File, p *os.Process) error { return p.Signal(syscall.SIGTERM) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			outer, inner := openTerminal(t)
			before := modesOf(t, inner)
			seen := newScreen()
			go func() { _, _ = outer.WriteTo(seen) }()
			p := exec.CommandContext(t.Context(), program, "top", "--store", dir)
			p.Env = append(os.Environ(), asProgram+"=1", "TERM="+c.terminal, "NO_COLOR=1")
			p.Stdin, p.Stdout, p.Stderr = inner, inner, inner
			p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			seen.waitFor(t, "UNDER WAY", 1)
			if err := c.end(outer, p.Process); err != nil {
				t.Fatal(err)
			}
			overdue := time.AfterFunc(inVain, func() { _ = p.Process.Kill() })
			defer overdue.Stop()
			if err := p.Wait(); err != nil {
				t.Errorf("ended with %v:\n%q", err, seen.String())
			}
			if after := modesOf(t, inner); after != before {
				t.Errorf("the terminal was %+v, it is %+v", before, after)
			}
			_ = inner.Close()
			text := seen.String()
			if dumb := c.terminal == "dumb"; strings.Contains(text, alternate) == dumb || dumb && strings.Contains(text, "\x1b") {
				t.Errorf("on %s it wrote %q", c.terminal, text)
			}
			if strings.Contains(text, "\x1b[31m") {
				t.Errorf("NO_COLOR, and there is red: %q", text)
			}
			if c.terminal != "dumb" {
				seen.waitFor(t, back, 1)
				seen.waitFor(t, shown, 1)
			}
		})
	}
}
