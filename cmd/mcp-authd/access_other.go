//go:build !linux && !darwin && !freebsd

package main

// mayWrite takes it for granted where this system is not asked.
func mayWrite(string) error { return nil }
