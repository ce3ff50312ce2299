//go:build !linux

package main

// becomeInit is for containers, which are Linux.
func becomeInit() {}
