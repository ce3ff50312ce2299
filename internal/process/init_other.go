//go:build !linux

package process

// BecomeInit is for containers, which run Linux.
func BecomeInit() {}
