// Package allowance limits requests, by each replica alone or by all replicas together.
//
// A replica counts in memory in both cases, so that what exceeds its own count costs the store nothing.
// Together, it also keeps account of what it has let through for each key, and takes that from the
// allowance in the store before it lets through more than a thirty-second part of it. So a rare request
// costs the store nothing, a busy key one write for several requests, and a refusal is remembered
// for as long as the key has to wait. The price: each replica may let through a thirty-second part more.
//
// While the store does not answer, each replica counts alone.
package allowance
