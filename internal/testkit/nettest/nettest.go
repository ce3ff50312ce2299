// Package nettest gives tests addresses for servers that they start as programs, which cannot
// inherit a listener.
package nettest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// The ports are below those that operating systems assign to clients and to listeners on port 0.
// These start at 32768 on Linux and at 49152 elsewhere, so nothing else takes a free port by
// chance. Each test process owns a block of ports. A listener on the guard port reserves the block.
const (
	guards = 20000
	blocks = 100
	first  = guards + blocks
	each   = 100 // ports per block
)

// block is the range of ports that a process owns until it ends.
type block struct {
	guard net.Listener
	first int

	mu   sync.Mutex // guards used
	used int        // number of addresses returned
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

// Address returns a loopback address with a free port. It returns each address only once across all
// test processes.
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
