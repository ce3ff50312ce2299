// Package conformance keeps docs/conformance.md true: its test reads the
// requirement ids out of the source and the tests and compares them with the table.
package conformance
