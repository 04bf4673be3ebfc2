// Package archive is the read model that operators ask: transfers, attempts, decisions, arrivals
// and refusals in a SQLite file, folded from the log by the folds that decisions are made on.
//
// A file (a generation) belongs to one network, one life of its streams and one version of the
// folding; position and rows are written in one transaction, so that each fact counts once,
// whenever the process ends. A directory holds one generation that answers, and beside it the
// one that a rebuild makes and the one that answered before.
package archive
