package actors

import (
	"strconv"
	"time"

	"github.com/landfall/landfall/events"
)

// lengths are the arguments of messages that are a length of time. On the wire they are whole
// seconds, or empty when nobody knows; words are made of them where the message is shown.
var lengths = []string{"eta", "keep", "wait"}

// lengthArg is such an argument: rounded up, so that nobody is told to come too early.
func lengthArg(name string, d time.Duration, known bool) events.Arg {
	if !known {
		return events.Arg{Name: name}
	}
	return events.Arg{Name: name, Value: strconv.FormatInt(ceil(max(d, 0), time.Second), 10)}
}

// length is a number of seconds as a player reads it: no more exact than a wait can be known.
// What is no number of seconds is not known.
func (m Messages) length(seconds string) string {
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 0 {
		return m["length.unknown"]
	}
	unit, count := unitOf(time.Duration(min(n, maxLength)) * time.Second)
	return m.Text(unit, []events.Arg{{Name: "n", Value: strconv.FormatInt(count, 10)}})
}

// maxLength keeps any number of seconds within what can be calculated with.
const maxLength = 1e9

func unitOf(d time.Duration) (unit string, count int64) {
	switch {
	case d <= 10*time.Second:
		return "length.seconds", max(ceil(d, time.Second), 1)
	case d <= time.Minute:
		return "length.seconds", 5 * ceil(d, 5*time.Second)
	case d <= 2*time.Hour:
		return "length.minutes", ceil(d, time.Minute)
	case d <= 48*time.Hour:
		return "length.hours", ceil(d, time.Hour)
	}
	return "length.days", ceil(d, 24*time.Hour)
}

// ceil is how many units a length takes, the last one begun included.
func ceil(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }
