// Package allowance limits requests, either in each replica alone or across all replicas.
//
// Each replica counts in memory, so that requests beyond its own limit never reach the store. If
// replicas share a store, each takes the admitted amount from there before it exceeds 1/32 of the
// burst. So rare requests cause no writes, and several requests of a busy key cause one. A refusal
// is remembered for as long as the key must wait. The price: each replica may admit 1/32 more.
//
// While the store does not answer, each replica counts alone.
package allowance
