// Package streams is everything that knows NATS: the buckets of the log as data, the
// guarded append, the tail, requests and news between hosts, and who may do what.
// It implements the Log and the Bus that actors need. streams/embedded holds the server.
package streams
