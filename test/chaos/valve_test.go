package chaos

import (
	"net"
	"sync"
	"testing"
	"time"
)

// valve is the network between the replicas and PostgreSQL. When it is shut, it passes and loses
// nothing, as if the machine behind it hung.
type valve struct {
	net.Listener
	to    string
	delay time.Duration // each way
	mu    sync.RWMutex  // held for reading during a copy
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

// parcel is data on its way.
type parcel struct {
	data []byte
	due  time.Time
}

// pass copies until one side ends, and then closes the other. Data on its way does not hold up what
// follows.
func (v *valve) pass(to, from net.Conn) {
	defer to.Close()
	way, failed := make(chan parcel, 64), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(failed)
		for p := range way {
			pause(time.Until(p.due))
			v.mu.RLock()
			_, err := to.Write(p.data)
			v.mu.RUnlock()
			if err != nil {
				from.Close()
				return
			}
		}
	})
	for err := error(nil); err == nil; {
		b := make([]byte, 32<<10)
		var n int
		n, err = from.Read(b)
		select {
		case way <- parcel{b[:n], time.Now().Add(v.delay)}:
		case <-failed:
			err = net.ErrClosed
		}
	}
	close(way)
	wg.Wait()
}
