package transmit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/secevent"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	await "github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

const (
	issuer = "https://a.example.com"
	bearer = "what-the-operator-gave-to-both"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// follower is a receiver: our own endpoint for security events, with the keys of our issuer. first
// can intercept requests.
type follower struct {
	*httptest.Server
	signer *keys.Manager

	mu     sync.Mutex // guards the following fields
	first  func(w http.ResponseWriter) bool
	orders []secevent.Order
	seen   []string // IDs, including repeated ones
}

func (f *follower) Sources(_ context.Context, iss string) ([]secevent.Source, error) {
	if iss != issuer {
		return nil, nil
	}
	return []secevent.Source{f}, nil
}

func (f *follower) Name() string { return "a" }

func (f *follower) Policy() secevent.Policy {
	return secevent.Policy{Issuer: issuer, Issuers: []string{issuer}, Audience: []string{f.URL}, Bearer: bearer}
}

func (f *follower) Verify(ctx context.Context, raw string) ([]byte, error) {
	signed, err := jose.ParseSignedCompact(raw, secevent.Algorithms)
	if err != nil {
		return nil, secevent.ErrKey
	}
	published, _, err := f.signer.JWKS(ctx)
	if err != nil {
		return nil, err
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(published, &set); err != nil {
		return nil, err
	}
	for _, k := range set.Keys {
		if payload, err := signed.Verify(k); err == nil {
			return payload, nil
		}
	}
	return nil, secevent.ErrKey
}

func (f *follower) End(_ context.Context, o secevent.Order) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, before := range f.orders {
		if before.ID == o.ID {
			return 0, secevent.ErrRepeated
		}
	}
	f.orders = append(f.orders, o)
	return 1, nil
}

// rig is a store with events for a follower.
type rig struct {
	*installation.Installation
	t    *testing.T
	to   *follower
	user string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{Installation: installation.New(t), t: t, user: "usr_1"}
	r.Set(time.Now().Truncate(time.Millisecond)) // the outbox uses the database's times
	signer, err := keys.New(t.Context(), keys.Config{
		Store: r.Store, SecretKeys: [][]byte{make([]byte, secrets.KeySize)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.to = &follower{signer: signer}
	endpoint := secevent.NewReceiver(slog.New(slog.DiscardHandler), nil, r.Now, r.to)
	r.to.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.to.mu.Lock()
		first := r.to.first
		if token, err := secevent.Issuer(string(body)); err == nil && token == issuer {
			payload, _ := r.to.Verify(req.Context(), string(body))
			parsed, _ := secevent.Parse(payload)
			r.to.seen = append(r.to.seen, parsed.ID)
		}
		r.to.mu.Unlock()
		if first != nil && first(w) {
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		endpoint.ServeHTTP(w, req)
	}))
	t.Cleanup(r.to.Close)
	if err := r.Store.CreateUser(t.Context(), storage.User{ID: r.user, Name: "ann", CreatedAt: r.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := r.transmitter().Name(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) transmitter(more ...Receiver) *Transmitter {
	return New(Config{
		Issuer: issuer, Store: r.Store, Log: r.Logger, Audit: r.Audit, Now: r.Now,
		Receivers: append(more, Receiver{ID: "b", URL: r.to.URL, Audience: r.to.URL, Bearer: bearer,
			Networks: loopback}),
		Sign: func(ctx context.Context, claims any) (string, error) {
			return r.to.signer.Sign(ctx, secevent.Type, claims)
		},
	})
}

// change sets a new password, which creates one event.
func (r *rig) change() {
	r.t.Helper()
	if err := r.Store.SetPassword(r.t.Context(), r.user, secrets.Token(""), false, r.Now()); err != nil {
		r.t.Fatal(err)
	}
}

// send sends the due events of all receivers.
func (r *rig) send(t *Transmitter) {
	for _, l := range t.lines {
		for t.next(r.t.Context(), l) {
		}
	}
}

func (r *rig) waiting() storage.Backlog {
	r.t.Helper()
	all, err := r.Store.Backlogs(r.t.Context(), r.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(b storage.Backlog) bool { return b.Receiver == "b" })
	return all[i]
}

func (r *rig) reasons() (out []secevent.Reason) {
	r.to.mu.Lock()
	defer r.to.mu.Unlock()
	for _, o := range r.to.orders {
		if len(o.Targets) != 1 || o.Targets[0].Issuer != issuer || o.Targets[0].Subject != r.user {
			r.t.Errorf("got %+v", o)
		}
		out = append(out, o.Reason)
	}
	return out
}

func TestTransmitter(t *testing.T) {
	t.Run("AS-245: what is cut here is cut there, in order", func(t *testing.T) {
		r := newRig(t)
		if err := r.Store.StopEverything(t.Context(), r.user, r.Now()); err != nil {
			t.Fatal(err)
		}
		if err := r.Store.SetPassword(t.Context(), r.user, "x", true, r.Now()); err != nil {
			t.Fatal(err)
		}
		// Everything else has already stopped at that moment, so there is one event.
		if err := r.Store.SetUserDisabled(t.Context(), r.user, true, r.Now()); err != nil {
			t.Fatal(err)
		}
		r.send(r.transmitter())
		want := []secevent.Reason{secevent.ReasonSession, secevent.ReasonCredentials, secevent.ReasonAccount}
		if got := r.reasons(); !slices.Equal(got, want) || r.waiting().Waiting != 0 {
			t.Errorf("got %q, %+v", got, r.waiting())
		}
		n := strings.Count(r.Log.String(), `"event":"securityevent.sent"`)
		if n != 3 || strings.Contains(r.Log.String(), bearer) {
			t.Errorf("got %d events in %s", n, r.Log)
		}
	})
	t.Run("AS-245: a receiver that is down gets it later, and holds up no other", func(t *testing.T) {
		r := newRig(t)
		down := Receiver{ID: "down", URL: "http://127.0.0.1:1/events", Audience: "x", Networks: loopback}
		sender := r.transmitter(down)
		if err := sender.Name(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.to.first = func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusBadGateway); return true }
		r.change()
		r.send(sender)
		if b := r.waiting(); b.Waiting != 1 || b.Tries != 1 || !strings.Contains(b.Failed, "502") {
			t.Errorf("got %+v", b)
		}
		r.to.first = nil
		r.send(sender) // not due yet
		if r.reasons() != nil {
			t.Error("it was sent too early")
		}
		r.Advance(firstTry)
		r.send(sender)
		if got := r.reasons(); len(got) != 1 || r.waiting().Waiting != 0 {
			t.Errorf("got %q, %+v", got, r.waiting())
		}
		if !slices.Equal(r.to.seen, []string{r.to.orders[0].ID, r.to.orders[0].ID}) {
			t.Errorf("each try must have the same id: %q", r.to.seen)
		}
	})
	for name, tt := range map[string]struct {
		status int
		body   string
		kept   bool
	}{
		"the token cannot be read":   {400, `{"err":"invalid_request"}`, false},
		"the key is not known":       {400, `{"err":"invalid_key"}`, true},
		"the bearer token is wrong":  {400, `{"err":"authentication_failed"}`, true},
		"there is nothing":           {404, "", true},
		"too much":                   {429, "", true},
		"another document":           {400, `{"err":7}`, true},
		"what it says is not logged": {500, `{"err":"` + strings.Repeat("secret", 20) + `"}`, true},
	} {
		t.Run(fmt.Sprintf("AS-245 RFC 8935 2.3: the receiver says that %s", name), func(t *testing.T) {
			r := newRig(t)
			r.to.first = func(w http.ResponseWriter) bool {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
				return true
			}
			r.change()
			r.send(r.transmitter())
			if b := r.waiting(); (b.Waiting == 1) != tt.kept {
				t.Errorf("got %+v", b)
			}
			if lost := strings.Contains(r.Log.String(), "securityevent.lost"); lost == tt.kept ||
				strings.Contains(r.Log.String(), "secretsecret") {
				t.Errorf("got %s", r.Log)
			}
		})
	}
	t.Run("AS-245: what no receiver takes for seven days is lost, and the log says so", func(t *testing.T) {
		r := newRig(t)
		r.to.first = func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusBadGateway); return true }
		r.change()
		r.Advance(storage.DeliveryFor - time.Minute)
		r.send(r.transmitter())
		if !strings.Contains(r.Log.String(), "securityevent.lost") {
			t.Errorf("got %s", r.Log)
		}
	})
	t.Run("AS-245: a server that ends after it has sent sends again, and that ends nothing twice", func(t *testing.T) {
		r := newRig(t)
		r.change()
		d, err := r.Store.TakeDelivery(t.Context(), "b", r.Now(), r.Now().Add(held))
		if err != nil {
			t.Fatal(err)
		}
		gone := r.transmitter()
		if err := gone.send(t.Context(), gone.lines[0], d); err != nil {
			t.Fatal(err)
		}
		another := r.transmitter()
		r.send(another) // the stopped one holds it
		if n := len(r.to.seen); n != 1 {
			t.Errorf("it was sent %d times", n)
		}
		r.Advance(held)
		r.send(another)
		if got := r.reasons(); len(got) != 1 || len(r.to.seen) != 2 || r.to.seen[0] != r.to.seen[1] {
			t.Errorf("got %q of %q", got, r.to.seen)
		}
	})
	t.Run("AS-245: of many servers one sends each", func(t *testing.T) {
		r := newRig(t)
		r.Log.Reset()
		for range 8 {
			r.change()
		}
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		quiet := r.transmitter()
		quiet.Log, quiet.Audit = slog.New(slog.DiscardHandler), nil
		for range 4 {
			all.Go(func() { quiet.Run(ctx) })
		}
		await.Until(t, "all are sent", func() bool { return r.waiting().Waiting == 0 })
		stop()
		all.Wait()
		if len(r.to.seen) != 8 || len(r.reasons()) != 8 {
			t.Errorf("8 were sent %d times", len(r.to.seen))
		}
	})
	t.Run("AS-245: a verification event is acknowledged", func(t *testing.T) {
		r := newRig(t)
		d := storage.Delivery{
			ID: "set_v", Receiver: "b", Kind: storage.KindVerification, Detail: []byte("{}"), At: r.Now(),
		}
		if err := errors.Join(r.Store.PutDelivery(t.Context(), d)); err != nil {
			t.Fatal(err)
		}
		r.send(r.transmitter())
		if r.waiting().Waiting != 0 || !slices.Equal(r.to.seen, []string{"set_v"}) {
			t.Errorf("got %+v, %q", r.waiting(), r.to.seen)
		}
	})
}
