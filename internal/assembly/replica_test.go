package assembly

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// TestPresence checks that a server is listed while it serves, and not after it has stopped
// (OB-10).
func TestPresence(t *testing.T) {
	s := consoled(t, func(c *config.Loaded) { c.Replica = "web-1" })
	s.parts.Version = "1.2.3"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	seen := func() []storage.Replica {
		t.Helper()
		all, _, err := s.parts.Store.Replicas(t.Context(), s.parts.Now())
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, authserver.Site{Listener: l, Handler: s.Handler()}) }()
	wait.Until(t, "OB-10 it is listed", func() bool { return len(seen()) > 0 })
	r := seen()[0]
	if r.ID != s.parts.replica || r.Name != "web-1" || r.Version != "1.2.3" || r.Address != l.Addr().String() ||
		r.Issuer != s.Auth.Issuer() || r.Migration < 48 || time.Since(r.SeenAt).Abs() > time.Minute {
		t.Errorf("OB-10: got %+v", r)
	}
	p := browse(t, s.Handler()).at("/admin/health/show", "alice")
	wantPage(t, p, 200, "/admin/health/show", "Replicas", "web-1", "shows this page", ">running<",
		"One server has this database.", "Running since")
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := seen(); len(got) != 0 {
		t.Errorf("OB-10: it has stopped, and is listed: %+v", got)
	}
}
