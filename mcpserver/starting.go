package mcpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"
)

// Who asks while the server starts waits a moment and asks again. An address that is taken and does not
// answer would look like a server that hangs.
const (
	startingRetry = "1"                    // seconds
	startingRead  = 5 * time.Second        // for a request to arrive
	startingEnd   = 500 * time.Millisecond // for answers that are on their way
)

// starting answers each request with 503 until end, on the listener that the server then serves on.
type starting struct {
	listener net.Listener
	server   *http.Server
	done     chan struct{}
	ended    bool
}

// deadliner is what a listener has whose Accept can be ended without closing it.
type deadliner interface{ SetDeadline(time.Time) error }

// whileStarting begins to answer. With a certificate it does so by https.
func whileStarting(l net.Listener, cert func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *starting {
	s := &starting{listener: l, done: make(chan struct{})}
	s.server = &http.Server{
		Handler:           http.HandlerFunc(notYet),
		ReadHeaderTimeout: startingRead,
		ReadTimeout:       startingRead,
		WriteTimeout:      startingRead,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	s.server.SetKeepAlivesEnabled(false) // a connection that stays would reach this handler later
	go func() {
		defer close(s.done)
		if cert == nil {
			_ = s.server.Serve(borrowed{l}) // it ends with the deadline of the listener
			return
		}
		s.server.TLSConfig = &tls.Config{GetCertificate: cert}
		_ = s.server.ServeTLS(borrowed{l}, "", "")
	}()
	return s
}

func notYet(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", startingRetry)
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, "The server is starting. Please try again in a moment.", http.StatusServiceUnavailable)
}

// end stops answering and leaves the listener as it was. Connections that come from then on wait for who
// serves next. It may be called twice.
func (s *starting) end() error {
	if s.ended {
		return nil
	}
	d := s.listener.(deadliner) // of a TCP listener, which Serve makes
	if err := d.SetDeadline(time.Unix(1, 0)); err != nil {
		return err
	}
	<-s.done
	s.ended = true
	ctx, cancel := context.WithTimeout(context.Background(), startingEnd)
	defer cancel()
	if s.server.Shutdown(ctx) != nil {
		_ = s.server.Close()
	}
	return d.SetDeadline(time.Time{})
}

// borrowed is a listener that who serves on it cannot close.
type borrowed struct{ net.Listener }

// Accept implements net.Listener.
func (b borrowed) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = http.ErrServerClosed
	}
	return c, err
}

// Close implements net.Listener.
func (b borrowed) Close() error { return nil }
