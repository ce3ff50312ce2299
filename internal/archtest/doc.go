// Package archtest contains the architecture as tests. They check which package may import which,
// which packages a tool author must never link, and the few style rules that a machine can check. A
// failure names the rule. The reasons are in the table.
package archtest
