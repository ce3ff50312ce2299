package notice

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/safehttp"
)

// SignatureHeader holds the time and the signature of an event: "t=1700000000,v1=...", the hex form
// of HMAC-SHA256 under the secret over the time, a dot, and the body. A receiver refuses one that
// is older than some minutes, and an id that it has seen.
const SignatureHeader = "Mcp-Authd-Signature"

// Webhook posts events to a URL of the operator.
type Webhook struct {
	url    string
	secret []byte
	http   *safehttp.Client
	now    func() time.Time
}

// NewWebhook returns a Webhook. Without networks it reaches public addresses only.
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
	header := http.Header{SignatureHeader: {w.sign(w.now(), body)}}
	if err := w.http.Post(ctx, w.url, header, body); err != nil {
		return fmt.Errorf("notice: webhook: %w", err)
	}
	return nil
}

func (w *Webhook) sign(at time.Time, body []byte) string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, w.secret)
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return "t=" + stamp + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
