package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// processorTime returns the time used by all threads of a process, in nanoseconds, while
// /proc/PID/stat counts ticks of 10 ms.
func processorTime(pid int) (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		return 0, fmt.Errorf("the processor time of process %d cannot be read: it ended, or this is not Linux", pid)
	}
	var total time.Duration
	for _, file := range threads {
		b, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		used, _, _ := strings.Cut(string(b), " ")
		n, err := strconv.ParseInt(used, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		total += time.Duration(n)
	}
	return total, nil
}

// memory is the memory of a process, in megabytes of a million bytes.
type memory struct {
	resident, peak float64
	own            float64 // excluding pages of a file
}

func (m memory) String() string {
	return fmt.Sprintf("%6.1f MB resident: %.1f MB of its own, and %.1f MB of its file", m.resident, m.own,
		m.resident-m.own)
}

func readMemory(pid int) (memory, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, err
	}
	var m memory
	fields := map[string]*float64{"VmRSS:": &m.resident, "VmHWM:": &m.peak, "RssAnon:": &m.own}
	for line := range bytes.Lines(b) {
		words := strings.Fields(string(line))
		if len(words) < 2 || fields[words[0]] == nil {
			continue
		}
		kibibytes, err := strconv.ParseFloat(words[1], 64)
		if err != nil {
			return memory{}, fmt.Errorf("/proc/%d/status: %w", pid, err)
		}
		*fields[words[0]] = kibibytes * 1024 / 1e6
	}
	if m.resident == 0 {
		return memory{}, fmt.Errorf("/proc/%d/status has no VmRSS", pid)
	}
	return m, nil
}

// forgetPeak resets the peak of a process to its current memory.
func forgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) // proc(5)
}
