// Package r1 is a network over a real store of one node, for tests: its hosts log in with the
// permissions of their roles, and a test breaks the store, a host or single requests in the
// same words as a streamtest.Memory. It is made for testing/synctest bubbles, where minutes
// of the store cost nothing.
package r1
