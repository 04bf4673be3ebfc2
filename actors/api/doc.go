// Package api lets programs use a network: over HTTP, described by an OpenAPI document, and as
// operations that another transport can carry (see Service.Operations). It decides nothing: each
// operation is a call of the dispatcher of its process, as hosts and the command line make it, or
// a look at that dispatcher's folds.
package api
