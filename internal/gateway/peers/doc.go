// Package peers passes requests of MCP sessions to the replica that holds them. A program on standard
// input and output runs in one replica, and a load balancer may send the requests of its session to
// any: the id of the session names the holder, and a replica that does not hold it asks there.
//
// # Connections
//
// Each replica has a listener for the others, whose address is in the table of replicas. Connections
// are TLS 1.3 with certificates on both sides. A replica makes a key at its start, and signs its
// certificate, which names its ID, with a key that is derived from the master key. So only who has the
// master key takes part, and who dials knows that the replica it wants has answered, also when another
// one has got its address. Certificates live as long as the process: no clock is asked.
//
// # Requests
//
// The guard of the replica that a client reached has judged a request before it is passed on: token,
// limits, rules. What goes over is the caller as the guard knows it, and not the token; the holder looks
// for the session among those of this caller. A request that was passed on is never passed on again.
//
// # When the holder does not answer
//
// A holder that has ended has taken the session with it, and the answer is 404, at which clients begin a
// new session (MCP, Streamable HTTP, "Session Management"). A holder that runs and cannot be reached is
// a fault of the installation, and the answer is 503.
package peers
