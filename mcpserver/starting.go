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

// During the start, clients are asked to retry shortly. An address that is bound but does not
// answer would look like a server that hangs.
const (
	startingRetry = "1"                    // seconds
	startingRead  = 5 * time.Second        // limit for reading a request
	startingEnd   = 500 * time.Millisecond // limit for finishing responses
)

// starting answers each request with 503 until end is called, on the listener that the server uses
// afterwards.
type starting struct {
	listener net.Listener
	server   *http.Server
	done     chan struct{}
	ended    bool
}

// deadliner is a listener whose Accept can be interrupted without closing it.
type deadliner interface{ SetDeadline(time.Time) error }

// whileStarting starts answering. With a certificate it uses https.
func whileStarting(l net.Listener, cert func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *starting {
	s := &starting{listener: l, done: make(chan struct{})}
	s.server = &http.Server{
		Handler:           http.HandlerFunc(notYet),
		ReadHeaderTimeout: startingRead,
		ReadTimeout:       startingRead,
		WriteTimeout:      startingRead,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	s.server.SetKeepAlivesEnabled(false) // a kept connection would reach this handler later
	go func() {
		defer close(s.done)
		if cert == nil {
			_ = s.server.Serve(borrowed{l}) // returns at the listener's deadline
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

// end stops answering and restores the listener. Later connections wait for the next server on it.
// It may be called twice.
func (s *starting) end() error {
	if s.ended {
		return nil
	}
	d := s.listener.(deadliner) // a TCP listener, created by Serve
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

// borrowed is a listener that its server cannot close.
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
