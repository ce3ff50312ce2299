package notice

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/safehttp"
)

// Webhook posts events to a configured URL.
type Webhook struct {
	url    string
	secret []byte
	http   *safehttp.Client
	now    func() time.Time
}

// NewWebhook returns a Webhook. Without networks it reaches only public addresses.
func NewWebhook(url, secret string, networks []netip.Prefix) *Webhook {
	return &Webhook{
		url: url, secret: []byte(secret), now: time.Now,
		http: safehttp.New(safehttp.Options{Timeout: 10 * time.Second, Networks: networks}),
	}
}

// Post implements Hook.
func (w *Webhook) Post(ctx context.Context, e Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("notice: webhook: %w", err)
	}
	header := http.Header{safehttp.SignatureHeader: {safehttp.Signature(w.secret, w.now(), body)}}
	if err := w.http.Post(ctx, w.url, header, body); err != nil {
		return fmt.Errorf("notice: webhook: %w", err)
	}
	return nil
}
