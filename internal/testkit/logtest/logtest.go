// Package logtest captures the output of a program under test.
package logtest

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

// Buffer is a buffer that is safe for concurrent writing and reading.
type Buffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *Buffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns the content so far.
func (l *Buffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Reset empties the buffer.
func (l *Buffer) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

// Events counts the audit events with a name in a log of JSON lines.
func (l *Buffer) Events(name string) int {
	return strings.Count(l.String(), fmt.Sprintf(`"event":%q`, name))
}
