// Package projections folds the log into the state that decisions are made on: journeys,
// sessions, operator decisions and the fleet. Folds are pure and never compare times; the
// times they carry are the reader's own (when a fact was seen), for ages only.
//
// A View runs all folds of a dispatcher against a log and answers reads.
package projections
