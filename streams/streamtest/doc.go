// Package streamtest holds a log and a bus in memory, with faults to inject, and the
// conformance suite that every implementation of the two must pass.
package streamtest
