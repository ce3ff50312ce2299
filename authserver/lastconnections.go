package authserver

import (
	"net"
	"sync"
	"time"
)

// settleTime is the time for the requests of connections that were accepted just before the
// listeners close.
const settleTime = 200 * time.Millisecond

// closeListeners closes the listeners, then waits for the first requests of new connections:
// http.Server.Shutdown drops requests that arrive after it has begun (OP-07).
func closeListeners(all []net.Listener) {
	for _, l := range all {
		_ = l.Close() // it accepts no connections in either case
	}
	time.Sleep(settleTime)
}

// onceListener closes its listener once: http.Server.Shutdown would report a second Close as an
// error.
type onceListener struct {
	net.Listener
	once sync.Once
	err  error
}

// Close implements net.Listener.
func (l *onceListener) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}
