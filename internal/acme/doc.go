// Package acme gets the certificate of the server by itself (RFC 8555), and keeps it fresh: certmagic
// does the work, the store keeps what is got, sealed, so that one replica obtains for all, and each of
// them can answer the challenges of another.
//
//	manager.go  a manager of certificates, and its two answers: to handshakes, and to requests over http
//	dns.go      challenges over DNS
//	watch.go    how long certificates are good, and what other replicas got
//	files.go    what certmagic keeps, in the store
//	locks.go    that one replica at a time does what need not be done twice
//	kept.go     the certificate that the store has
//	reseal.go   the same under another master key
//	explain.go  what the operator is told when it fails
//	log.go      what certmagic logs, in the log of the server
//	bounds.go   what others may send, and how long they may take
package acme
