// Package archtest contains the architecture as tests: which package may import which, which
// packages a tool author must never have to link, and the few style rules that a machine can check.
// A failure names the rule. The reasons are in the table.
package archtest
