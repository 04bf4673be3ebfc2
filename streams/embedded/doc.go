// Package embedded is the NATS server inside a process of ours: one node on a directory
// that belongs to one network and one process at a time, or three nodes for tests.
package embedded
