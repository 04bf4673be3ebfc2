// Package sim is a network of game servers, edges and players in one process, for the demo,
// for tests and for load. Everything above the ports is the real code: dispatchers, backends,
// log and bus. What is simulated is what a port stands for: the game server (World), the
// edge's sockets (Edge) and the players' clients (Client).
package sim
