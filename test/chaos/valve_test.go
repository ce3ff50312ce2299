package chaos

import (
	"net"
	"sync"
	"testing"
)

// valve is the network between the replicas and PostgreSQL. When it is shut, it passes and loses
// nothing, as if the machine behind it hung.
type valve struct {
	net.Listener
	to string
	mu sync.RWMutex // held for reading during a copy
}

func newValve(t *testing.T, to string) *valve {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &valve{Listener: l, to: to}
	t.Cleanup(func() { l.Close() })
	go v.serve()
	return v
}

func (v *valve) shut() { v.mu.Lock() }
func (v *valve) open() { v.mu.Unlock() }

func (v *valve) serve() {
	for {
		in, err := v.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close()
			out, err := net.Dial("tcp", v.to)
			if err != nil {
				return
			}
			defer out.Close()
			var wg sync.WaitGroup
			wg.Go(func() { v.pass(out, in) })
			wg.Go(func() { v.pass(in, out) })
			wg.Wait()
		}()
	}
}

// pass copies until one side ends, and then closes the other.
func (v *valve) pass(to, from net.Conn) {
	defer to.Close()
	for b := make([]byte, 32<<10); ; {
		n, err := from.Read(b)
		v.mu.RLock()
		_, failed := to.Write(b[:n])
		v.mu.RUnlock()
		if err != nil || failed != nil {
			return
		}
	}
}
