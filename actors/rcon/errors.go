package rcon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/landfall/landfall/actors"
)

var (
	errRefused = errors.New("password refused")
	errForeign = errors.New("reply with an id that was never asked for")
	errTooLong = fmt.Errorf("reply longer than %d bytes", maxReply)
	errClosed  = errors.New("this sidecar has ended")
	errTimeout = errors.New("no answer in time")
)

// NotSentError says that the server never saw the command: trying again later
// is safe.
type NotSentError struct {
	Address string
	Command string // the first word
	Err     error
}

func (e *NotSentError) Error() string {
	var auth *AuthError
	var unreachable *UnreachableError
	if errors.As(e.Err, &auth) || errors.As(e.Err, &unreachable) {
		return e.Err.Error()
	}
	return fmt.Sprintf("rcon %s: %s not sent: %v", e.Address, e.Command, e.Err)
}

func (e *NotSentError) Unwrap() error { return e.Err }

// Is says it in the words of the port.
func (e *NotSentError) Is(target error) bool { return target == actors.ErrNotSent }

// UnknownError says that the command was written and no answer came: it may or
// may not have happened, and only reading the world back tells.
type UnknownError struct {
	Address string
	Command string // the first word
	Err     error
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("rcon %s: %s written, no answer, outcome unknown: %v", e.Address, e.Command, e.Err)
}

func (e *UnknownError) Unwrap() error { return e.Err }

// Is says it in the words of the port.
func (e *UnknownError) Is(target error) bool { return target == actors.ErrUnknown }

// UnreachableError says that nothing that speaks RCON answered.
type UnreachableError struct {
	Address string
	Err     error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("rcon %s: no connection: %v; set enable-rcon=true and this port in server.properties, start the server, or correct rcon.address", e.Address, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Is says it in the words of the port.
func (e *UnreachableError) Is(target error) bool { return target == actors.ErrDown }

// AuthError says that the server refused the password.
type AuthError struct{ Address string }

func (e *AuthError) Error() string {
	return fmt.Sprintf("rcon %s: password refused; put the value of rcon.password of server.properties into rcon.passwordFile", e.Address)
}

// Is says it in the words of the port: without the password there is no asking.
func (e *AuthError) Is(target error) bool { return target == actors.ErrDown }

// TooOldError says that the server has no transfer command: it is older than
// 1.20.5. Nothing was sent.
type TooOldError struct{ Address string }

func (e *TooOldError) Error() string {
	return fmt.Sprintf("rcon %s: the server does not know /transfer; it needs Minecraft 1.20.5 or newer", e.Address)
}

// Is says it in the words of the port.
func (e *TooOldError) Is(target error) bool { return target == actors.ErrNotSent }

// RefusedError is an answer of the server that is not the one hoped for.
type RefusedError struct {
	Act   string // what was tried, with the player or place
	Reply string
}

func (e *RefusedError) Error() string {
	if e.Reply == "" {
		return e.Act + ": the server said nothing"
	}
	return fmt.Sprintf("%s: the server said %q", e.Act, e.Reply)
}

// Is says it in the words of the port.
func (e *RefusedError) Is(target error) bool { return target == actors.ErrNotSent }

func refused(act, reply string) error {
	reply = clean(reply)
	if len(reply) > 200 {
		reply = reply[:200]
	}
	return &RefusedError{Act: act, Reply: strings.ToValidUTF8(reply, "")}
}

// because prefers the context's own reason over the I/O error it caused.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the server closed the connection")
	}
	return err
}
