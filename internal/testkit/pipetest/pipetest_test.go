package pipetest

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

func TestServer(t *testing.T) {
	if InBubble() {
		t.Error("a test without a bubble is taken for one with")
	}
	synctest.Test(t, func(t *testing.T) {
		if !InBubble() {
			t.Error("a bubble is not recognized")
		}
		s := NewServer(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			wait.Advance(time.Hour)
			_, _ = io.Copy(w, r.Body)
		})})
		began := time.Now()
		resp, err := s.Client().Post(s.URL, "text/plain", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if took := time.Since(began); resp.StatusCode != http.StatusOK || took != time.Hour {
			t.Errorf("got %s after %v", resp.Status, took)
		}
	})
}
