// Package acme gets the certificate of the server by itself (RFC 8555), and keeps it fresh: certmagic
// does the work, the store keeps what is got, sealed, so that one replica obtains for all, and each of
// them can answer the challenges of another.
//
//	manager.go  a manager of certificates, and its two answers: to handshakes, and to requests over http
//	files.go    what certmagic keeps, in the store
//	locks.go    that one replica at a time does what need not be done twice
//	reseal.go   the same under another master key
//	explain.go  what the operator is told when it fails
//	log.go      what certmagic logs, in the log of the server
package acme
