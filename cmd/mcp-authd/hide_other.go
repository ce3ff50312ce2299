//go:build !linux

package main

// hide has no counterpart here.
func hide() {}

func hidden(int) bool { return false }
