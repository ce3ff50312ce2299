// Package peers forwards requests of MCP sessions to the replica that holds the session. A stdio
// program runs in one replica, but a load balancer may send requests of its session to any replica.
// The session id names the holder, and the other replicas forward to it.
//
// # Connections
//
// Each replica has a listener for the others and publishes its address in the table of replicas.
// Connections use TLS 1.3 with certificates on both sides. At its start, a replica makes a key and
// signs a certificate with its ID, using a key derived from the master key. So only holders of the
// master key can connect. The dialing side knows that the right replica has answered, even if
// another one has taken over its address. Certificates last as long as the process and do not
// depend on clocks.
//
// # Requests
//
// The guard of the replica that the client reached judges each request before it is forwarded:
// token, limits, rules. The forwarded request names the guard's Principal and contains no token.
// The holder looks for the session among those of this caller. A forwarded request is never
// forwarded again.
//
// # When the holder does not answer
//
// If the holder has ended, its sessions have ended too. The answer is 404, and clients begin a new
// session (MCP, Streamable HTTP, "Session Management"). If the holder runs but cannot be reached,
// the installation has a fault, and the answer is 503.
package peers
