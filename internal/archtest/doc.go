// Package archtest holds the architecture as a test: which package may import
// which, what a tool author must never have to link, and the few rules of style
// that a machine can check. A failure names the rule; the reasons are in the table.
package archtest
