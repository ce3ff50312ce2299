// Package acme obtains and renews the server's certificates (RFC 8555) with certmagic. The store
// keeps them encrypted. One replica obtains a certificate for all, and each can answer the
// challenges of the others.
//
//	manager.go  the manager, TLS handshakes and HTTP requests
//	dns.go      DNS challenges
//	watch.go    lifetimes, and certificates from other replicas
//	files.go    certmagic's files in the store
//	locks.go    locks between replicas
//	kept.go     the stored certificate of a domain
//	reseal.go   encryption with a new master key
//	explain.go  advice after a failure
//	log.go      certmagic's log
//	bounds.go   limits for responses and DNS providers
package acme
