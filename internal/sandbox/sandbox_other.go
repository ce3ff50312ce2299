//go:build !linux

package sandbox

// executable is unused, because Check returns an error first.
const executable = "mcp-authd"

func (p *Policy) lacking() []string { return []string{"it is made of what Linux offers"} }

// Keeps returns false: without a sandbox, no file is protected.
func (p *Policy) Keeps(string) bool { return false }

func (p *Policy) become(string, []string) error { return ErrUnsupported }

// Kernel describes the features of this system.
func Kernel() string { return "nothing" }
