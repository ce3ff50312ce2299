// Package nettest gives tests addresses for servers that they start as programs, which cannot
// be handed a listener.
package nettest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// The ports lie below those that operating systems give to clients and to listeners on port 0
// (from 32768 on Linux, 49152 elsewhere): what was free a moment ago is not given to those.
// Test processes share them out: each has a block, and a listener that keeps it from the others.
const (
	guards = 20000
	blocks = 100
	first  = guards + blocks
	each   = 100 // ports of a block
)

// block is what a process has of the ports, until it ends.
type block struct {
	guard net.Listener
	first int

	mu   sync.Mutex // guards used
	used int        // how many addresses were given out
}

var own = sync.OnceValues(claim)

func claim() (*block, error) {
	begin := rand.IntN(blocks)
	for i := range blocks {
		n := (begin + i) % blocks
		if l, err := net.Listen("tcp", loopback(guards+n)); err == nil {
			return &block{guard: l, first: first + n*each}, nil
		}
	}
	return nil, errors.New("nettest: other processes have all blocks of ports")
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// Address returns a loopback address at which nothing listens, and no test begins to, unless
// it was given it.
func Address() (string, error) {
	b, err := own()
	if err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for range each {
		address := loopback(b.first + b.used%each)
		b.used++
		if l, err := net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", errors.New("nettest: every port of this process is in use")
}
