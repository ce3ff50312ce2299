//go:build !linux

package main

// becomeInit is for containers, which run Linux.
func becomeInit() {}
