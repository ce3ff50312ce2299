//go:build !linux

package sandbox

// executable is not reached: Check refuses before.
const executable = "mcp-authd"

func (p *Policy) lacking() []string { return []string{"it is made of what Linux offers"} }

// Keeps reports whether a file is kept from the program.
func (p *Policy) Keeps(string) bool { return false }

// become runs nothing: without a sandbox there is nothing to be content with.
func (p *Policy) become(string, []string) error { return ErrUnsupported }

// Kernel says what this system offers.
func Kernel() string { return "nothing" }
