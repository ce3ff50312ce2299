package auditsink

import (
	"context"
	"fmt"
	"io"

	"github.com/mcp-authd/mcp-authd/internal/auditformat"
)

// stream writes lines to a stream of the process.
type stream struct {
	writer
	out  io.Writer
	busy chan struct{} // has room for one write
}

func newStream(w writer, out io.Writer) *stream { return &stream{w, out, make(chan struct{}, 1)} }

// Deliver implements Sink. An unread stream blocks only this destination.
func (s *stream) Deliver(ctx context.Context, batch []auditformat.Entry) error {
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("nothing reads the stream: %w", ctx.Err())
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.out.Write(s.lines(batch))
		<-s.busy
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("nothing reads the stream: %w", ctx.Err())
	}
}

// Close implements Sink. The stream belongs to the process.
func (s *stream) Close() error { return nil }
