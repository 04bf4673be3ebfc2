// Package actors holds Landfall's decisions, as pure functions of state and command, and the
// loops around them: the dispatcher, which alone writes facts, and the backend, which
// promises coordinates and receives players. What they need of the outside are small ports
// (Log, Bus, World); adapters live in sub-packages.
package actors
