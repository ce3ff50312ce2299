package provider

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
)

// TestReads: OB-10. An administrator can see when metadata and keys were read, and which read
// failed.
func TestReads(t *testing.T) {
	u := fakeidp.Start(t)
	p := connect(t, toFake(u))
	if got := p.Reads(); got != (Reads{}) {
		t.Errorf("before the first read: got %+v", got)
	}
	if _, _, err := travel(t, p, u, nil); err != nil {
		t.Fatal(err)
	}
	got := p.Reads()
	if time.Since(got.Metadata).Abs() > time.Minute || time.Since(got.Keys).Abs() > time.Minute ||
		!got.Renew.Equal(got.Metadata.Add(metadataFresh)) || !got.Failed.IsZero() || got.Why != "" {
		t.Errorf("after a sign-in: got %+v", got)
	}
}

// TestFailedReads: a failure is described in this server's words, and earlier data are kept.
func TestFailedReads(t *testing.T) {
	at := time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC)
	var r reads
	r.note(readMetadata, at, nil)
	r.note(readKeys, at.Add(time.Second), nil)
	for _, tt := range []struct {
		what string
		err  error
		want string
	}{
		{readKeys, fmt.Errorf("hostile: %w", ErrUnreachable), "its keys could not be reached"},
		{readMetadata, fmt.Errorf("hostile: %w", ErrGarbage), "its metadata cannot be used"},
		{readMetadata, &TooOften{}, "its metadata could not be reached"},
		{readKeys, errors.New("hostile"), "its keys cannot be used"},
	} {
		r.note(tt.what, at.Add(time.Minute), tt.err)
		got := r.get()
		if got.Why != tt.want || !got.Failed.Equal(at.Add(time.Minute)) || strings.Contains(got.Why, "hostile") {
			t.Errorf("%v: got %+v", tt.err, got)
		}
		if !got.Metadata.Equal(at) || !got.Keys.Equal(at.Add(time.Second)) {
			t.Errorf("%v: the read values are lost: %+v", tt.err, got)
		}
	}
}
