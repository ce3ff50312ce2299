//go:build !linux

package process

// Hide does nothing on this system.
func Hide() {}

// Hidden always returns false on this system.
func Hidden(int) bool { return false }
