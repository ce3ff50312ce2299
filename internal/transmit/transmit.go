// Package transmit notifies configured receivers of revoked access. It takes deliveries from the
// outbox of the store, signs each as a security event token (RFC 8417), and pushes it (RFC 8935)
// until the receiver accepts it.
package transmit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/internal/secevent"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	interval  = time.Second      // between polls for deliveries
	nameEvery = 10 * time.Minute // between registrations of the receivers
	sendTime  = 10 * time.Second
	// held is longer than one delivery can take. A holder that exceeds it is gone.
	held     = 30 * time.Second
	firstTry = 5 * time.Second // after a failure; doubled each time, up to lastTry
	lastTry  = 10 * time.Minute
	// shortly before the store deletes the delivery, so that the log reports it
	giveUp     = storage.DeliveryFor - time.Hour
	maxMessage = 300
)

// Receiver is a receiver of security events.
type Receiver struct {
	ID       string
	URL      string
	Audience string
	Kinds    []string       // of storage; empty for all
	Bearer   string         // our token; "" for none
	Networks []netip.Prefix // private networks that may contain it
}

// Kinds lists the kinds that a receiver may choose.
var Kinds = []string{
	storage.KindSessionRevoked, storage.KindCredentialChange, storage.KindAccountDisabled, storage.KindAccountEnabled,
	storage.KindAccountPurged, storage.KindGrantRevoked,
}

// Sign signs claims as a JWT of a type.
type Sign func(ctx context.Context, claims any) (string, error)

// Config configures a Transmitter. All fields are required.
type Config struct {
	Issuer    string
	Receivers []Receiver
	Store     storage.Outbox
	Sign      Sign
	Log       *slog.Logger
	Audit     *audit.Recorder
	Now       func() time.Time
}

// Transmitter sends the queued events of receivers.
type Transmitter struct {
	Config
	lines []line
}

// line is a receiver with its HTTP client.
type line struct {
	Receiver
	http *safehttp.Client
}

// New returns a transmitter.
func New(c Config) *Transmitter {
	t := &Transmitter{Config: c}
	for _, r := range c.Receivers {
		t.lines = append(t.lines, line{r, safehttp.New(safehttp.Options{
			Timeout: sendTime, Networks: r.Networks, MaxBytes: 4 << 10,
		})})
	}
	return t
}

// Name makes the store queue events for the receivers from now on.
func (t *Transmitter) Name(ctx context.Context) error {
	var all []storage.EventReceiver
	for _, r := range t.Receivers {
		kinds := r.Kinds
		if len(kinds) == 0 {
			kinds = Kinds
		}
		all = append(all, storage.EventReceiver{ID: r.ID, Kinds: kinds})
	}
	if err := t.Store.NameReceivers(ctx, all, t.Now()); err != nil {
		return fmt.Errorf("transmit: %w", err)
	}
	return nil
}

// Run sends until ctx ends. Each receiver has its own loop, so none waits for another. Any number
// of replicas may run it: the store gives each delivery to one of them.
func (t *Transmitter) Run(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() {
		for wait(ctx, nameEvery) {
			if err := t.Name(ctx); err != nil {
				t.Log.WarnContext(ctx, "receivers of security events are not named", "error", err)
			}
		}
	})
	for _, l := range t.lines {
		loops.Go(func() {
			for more := true; more || wait(ctx, interval); {
				more = t.next(ctx, l) && ctx.Err() == nil
			}
		})
	}
	loops.Wait()
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// next sends the oldest queued event of a receiver, and reports whether there may be more.
func (t *Transmitter) next(ctx context.Context, l line) bool {
	now := t.Now()
	d, err := t.Store.TakeDelivery(ctx, l.ID, now, now.Add(held))
	if err != nil {
		if !errors.Is(err, storage.ErrNotFound) && ctx.Err() == nil {
			t.Log.WarnContext(ctx, "security events are not sent", "receiver", l.ID, "error", err)
		}
		return false
	}
	err = t.send(ctx, l, d)
	again, failed := time.Time{}, ""
	about := []slog.Attr{
		slog.String("receiver", l.ID), slog.String("what", d.Kind), slog.String("token_id", d.ID),
		slog.Int64("tries", d.Tries),
	}
	refused := (*refusal)(nil)
	switch {
	case err == nil:
		t.Audit.Record(ctx, audit.SecurityEventSent, about...)
	case errors.As(err, &refused) && refused.forGood(), now.Sub(d.At) > giveUp:
		t.Audit.Record(ctx, audit.SecurityEventLost, append(about, slog.String("reason", message(err)))...)
	default:
		again, failed = now.Add(pause(d.Tries)), message(err)
		t.Log.LogAttrs(ctx, slog.LevelWarn, "a security event could not be sent; it is tried again",
			append(about, slog.String("cause", failed))...)
	}
	// The event was sent, even if the server stops now.
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime/2)
	defer cancel()
	if err := t.Store.SettleDelivery(settle, d, again, failed); err != nil && !errors.Is(err, storage.ErrSpent) {
		t.Log.WarnContext(ctx, "a security event will be sent again", "receiver", l.ID, "error", err)
		return false
	}
	return again.IsZero()
}

// pause returns how long to wait after a number of attempts.
func pause(tries int64) time.Duration {
	p := firstTry
	for ; tries > 1 && p < lastTry; tries-- {
		p *= 2
	}
	return min(p, lastTry)
}

// send pushes one token (RFC 8935 §2.1).
func (t *Transmitter) send(ctx context.Context, l line, d storage.Delivery) error {
	claims, err := t.claims(l.Receiver, d)
	if err != nil {
		return err
	}
	token, err := t.Sign(ctx, claims)
	if err != nil {
		return err
	}
	header := http.Header{
		"Content-Type": {"application/" + secevent.Type}, "Accept": {"application/json"},
	}
	if l.Bearer != "" {
		header.Set("Authorization", "Bearer "+l.Bearer)
	}
	status, body, err := l.http.Push(ctx, l.URL, header, []byte(token))
	if err != nil {
		return err
	}
	if status >= 200 && status <= 299 {
		return nil
	}
	r := &refusal{status: status}
	_ = json.Unmarshal(body, r) // another format has no code
	return r
}

// refusal is the response of a receiver that refuses a token (RFC 8935 §2.3).
type refusal struct {
	status int
	Code   string `json:"err"`
}

func (r *refusal) Error() string {
	for _, c := range []secevent.Code{
		secevent.InvalidRequest, secevent.InvalidKey, secevent.InvalidIssuer, secevent.InvalidAudience,
		secevent.AuthenticationFailed, secevent.AccessDenied,
	} {
		if r.Code == string(c) {
			return fmt.Sprintf("the receiver answers %d, %s", r.status, c)
		}
	}
	return fmt.Sprintf("the receiver answers %d", r.status)
}

// forGood reports whether the receiver will never accept the same token. A wrong key, issuer,
// audience or bearer token is a configuration error, and the event is valid once it is fixed.
func (r *refusal) forGood() bool {
	return r.status == http.StatusBadRequest && r.Code == string(secevent.InvalidRequest)
}

func message(err error) string {
	s := err.Error()
	return s[:min(len(s), maxMessage)]
}
