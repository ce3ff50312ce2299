package notice_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestEN03AFullMailboxHoldsUpNobody checks that mails of one user that wait for a retry do not
// delay another user's mail.
func TestEN03AFullMailboxHoldsUpNobody(t *testing.T) {
	r := newRig(t)
	addBerta(t, r)
	m := &postbox{full: "anna@example.com", sent: make(chan string, 8), open: make(chan struct{})}
	close(m.open)
	r.cfg.Mailer = m
	r.cfg.Sleep = func(ctx context.Context, _ time.Duration) error {
		<-ctx.Done()
		return ctx.Err()
	}
	notifier := notice.New(r.cfg)
	defer drainNow(t, notifier)
	for range 5 {
		notifier.Tell(t.Context(), "usr_1", notice.Change{Kind: notice.WayRenamed})
	}
	notifier.Tell(t.Context(), "usr_3", notice.Change{Kind: notice.PasswordChanged})
	if to := <-m.sent; to != "berta@example.com" {
		t.Errorf("the letter went to %s", to)
	}
}

// TestEN03AFloodHidesNoOtherNotice checks notices of other users, and other kinds of notices of the
// same user.
func TestEN03AFloodHidesNoOtherNotice(t *testing.T) {
	r := newRig(t)
	addBerta(t, r)
	m := &postbox{sent: make(chan string, 4096), open: make(chan struct{})}
	r.cfg.Mailer = m
	notifier := notice.New(r.cfg)
	for range 300 {
		notifier.Tell(t.Context(), "usr_1", notice.Change{Kind: notice.WayRenamed})
	}
	notifier.Tell(t.Context(), "usr_1", notice.Change{Kind: notice.PasswordChanged})
	notifier.Tell(t.Context(), "usr_3", notice.Change{Kind: notice.PasswordChanged})
	close(m.open)
	notifier.Drain(t.Context())
	close(m.sent)
	got := map[string]int{}
	for to := range m.sent {
		got[to]++
	}
	// One rename is being delivered when the ninth is refused, so eight or nine are delivered.
	if n := got["anna@example.com"]; n < 9 || n > 10 || got["berta@example.com"] != 1 {
		t.Errorf("got %v", got)
	}
	lost := strings.Count(r.Log.String(), `"event":"notice.lost"`)
	if lost+got["anna@example.com"] != 301 {
		t.Errorf("%d were lost and %d delivered", lost, got["anna@example.com"])
	}
}

// TestEN03AFullQueueMakesRoom checks that a user without queued mails gets a place when others fill
// the queue.
func TestEN03AFullQueueMakesRoom(t *testing.T) {
	r := newRig(t)
	addBerta(t, r)
	m := &postbox{sent: make(chan string, 4096), open: make(chan struct{})}
	r.cfg.Mailer = m
	notifier := notice.New(r.cfg)
	for i := range 1300 {
		notifier.Write(notice.Letter{To: fmt.Sprintf("%d@example.com", i%200)})
	}
	notifier.Tell(t.Context(), "usr_3", notice.Change{Kind: notice.PasswordChanged})
	close(m.open)
	notifier.Drain(t.Context())
	close(m.sent)
	n, berta := 0, 0
	for to := range m.sent {
		n++
		if to == "berta@example.com" {
			berta++
		}
	}
	if berta != 1 || n > 1024+200 {
		t.Errorf("%d letters were delivered, %d of them berta's", n, berta)
	}
}

func addBerta(t *testing.T, r rig) {
	t.Helper()
	u := storage.User{ID: "usr_3", Name: "berta3", Mail: "berta@example.com", CreatedAt: r.Now()}
	if err := r.Store.CreateUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

func drainNow(t *testing.T, n *notice.Notifier) {
	t.Helper()
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	n.Drain(gone)
}

// postbox is a mail server that delivers nothing until open is closed. The mailbox full always
// fails.
type postbox struct {
	full string
	open chan struct{}
	sent chan string
}

func (p *postbox) Send(ctx context.Context, to, _, _, _ string) error {
	select {
	case <-p.open:
	case <-ctx.Done():
		return ctx.Err()
	}
	if to == p.full {
		return errors.New("452 mailbox full")
	}
	p.sent <- to
	return nil
}
