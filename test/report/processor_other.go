//go:build !linux

package main

import "time"

// processorTime returns 0, because it needs Linux. Other systems only show the times of packages.
func processorTime(int) time.Duration { return 0 }
