package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc (USER_HZ).
const tick = 10 * time.Millisecond

// processorTime returns the processor time of a process and its running descendants. It includes their
// children that have ended. It returns 0 if /proc cannot be read.
func processorTime(pid int) time.Duration {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	parent, ticks := map[int]int{}, map[int]int{}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // the process has ended
		}
		// proc(5): the name in parentheses can have any characters. The state (3) and the parent (4)
		// follow it; utime, stime, cutime and cstime are fields 14 to 17.
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || len(fields) < 15 {
			continue
		}
		parent[id], _ = strconv.Atoi(fields[1])
		for _, f := range fields[11:15] {
			n, _ := strconv.Atoi(f)
			ticks[id] += n
		}
	}
	sum := 0
	for id, n := range ticks {
		for p := id; p > 1; p = parent[p] {
			if p == pid {
				sum += n
				break
			}
		}
	}
	return time.Duration(sum) * tick
}
