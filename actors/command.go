package actors

import (
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Command is something a dispatcher wants to become a fact.
//
//sumtype:decl
type Command interface{ command() }

type (
	// Request opens a transfer for a player.
	Request struct {
		Transfer events.TransferID
		Fact     events.Requested
		// Origin is the backend that asks, empty for the API: the newest session must name it.
		Origin events.HostID
		// Limited names the arrivals that count for the limit of this request, nil when it has
		// none; Known is the newest of them, as the limit was looked at. After another one the
		// request is to come again (WAIT).
		Limited *allowance
		Known   events.TransferID
	}
	// Waitlist says that nobody can serve the transfer now.
	Waitlist struct {
		Transfer events.TransferID
		Decision events.Decision
	}
	// Reserve records a destination's promise.
	Reserve struct {
		Transfer events.TransferID
		Fact     events.Reserved
		By       events.Source
		InLogin  bool // by an edge that holds the reconnecting login
	}
	// Claim takes the token just before the move.
	Claim struct {
		Token   events.Token
		By      events.Source
		InLogin bool // by an edge that holds the login and dials the destination itself
	}
	// RecordMove says that the move was sent, or that nobody knows.
	RecordMove struct {
		Token  events.Token
		Claim  uint64
		How    events.MoveHow
		Result events.MoveResult
	}
	// Consume records the arrival that a destination reports.
	Consume struct {
		Server      events.HostID
		Incarnation events.Incarnation
		Join        events.JoinID
		Held        []events.Token
		Listed      *uint64 // number of the last promise when Held was listed; nil: not said
	}
	// Complete records that the player stands on the coordinate.
	Complete struct {
		Token  events.Token
		Server events.HostID // who reports it
		At     events.Position
	}
	// Release frees a token for a reason.
	Release struct {
		Token  events.Token
		Claim  uint64 // when given: only while this claim is the latest
		Reason events.Code
		Detail string
	}
	// Expire frees a token because its time, or its promise, ran out.
	Expire struct {
		Token  events.Token
		Claim  uint64 // when given: only while this claim is the latest
		Reason events.Code
	}
	// Reopen takes a claim back from a dispatcher presumed dead.
	Reopen struct {
		Token     events.Token
		By        events.Source
		Claim     uint64
		Evidence  events.Code
		LastBeat  uint64
		SilenceMs int64
	}
	// Fail ends the transfer.
	Fail struct {
		Transfer events.TransferID
		Code     events.Code
		Detail   string
		Decision *events.Decision
		// In names the phases in which this end is meant; elsewhere the world has moved on.
		In    []projections.Phase
		Claim uint64 // when given: only while this claim is the latest
		// Server, when given, must be the destination: it is the one that reports.
		Server events.HostID
	}
	// Cancel ends the transfer by the player's will or absence, before a move.
	Cancel struct {
		Transfer events.TransferID
		Code     events.Code
		Detail   string
	}
	// Supersede ends the transfer in favour of another wish, before it is claimed.
	Supersede struct {
		Transfer events.TransferID
		By       events.TransferID
	}
)

func (Request) command()    {}
func (Waitlist) command()   {}
func (Reserve) command()    {}
func (Claim) command()      {}
func (RecordMove) command() {}
func (Consume) command()    {}
func (Complete) command()   {}
func (Release) command()    {}
func (Expire) command()     {}
func (Reopen) command()     {}
func (Fail) command()       {}
func (Cancel) command()     {}
func (Supersede) command()  {}
