package auditsink

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/auditformat"
	"github.com/mcp-authd/mcp-authd/internal/safehttp"
)

// Endpoint is a server that receives POST requests.
type Endpoint struct {
	URL     string
	Headers http.Header    // added to each request
	Secret  string         // signs posts to a webhook; "" for no signature
	Roots   *x509.CertPool // its certificate authorities; nil for the system's
	// Networks lists private networks that may contain it. Local permits this machine.
	Networks []netip.Prefix
	Local    bool
}

const (
	postTime = 10 * time.Second
	// maxBody limits a request, in bytes. A single longer entry is sent alone.
	maxBody = 512 << 10
	// maxAnswer limits how much of a response is read.
	maxAnswer = 4 << 10
)

func (e Endpoint) client() *safehttp.Client {
	return safehttp.New(safehttp.Options{
		Timeout: postTime, MaxBytes: maxAnswer, InsecureLoopback: e.Local, Networks: e.Networks, RootCAs: e.Roots,
	})
}

// post posts a body, and returns the response if the server accepts it. Its errors omit the URL,
// which may contain a secret.
func (e Endpoint) post(ctx context.Context, c *safehttp.Client, h http.Header, body []byte) ([]byte, error) {
	all := e.Headers.Clone()
	if all == nil {
		all = http.Header{}
	}
	maps.Copy(all, h)
	status, answer, err := c.Push(ctx, e.URL, all, body)
	var asked *url.Error
	switch {
	case errors.Is(err, safehttp.ErrRefused):
		return nil, errors.New("the receiver has no public address, and is not in networks")
	case errors.As(err, &asked):
		return nil, asked.Err
	case err != nil:
		return nil, err
	case status < 200 || status > 299:
		return nil, fmt.Errorf("the receiver answers %d", status)
	}
	return answer, nil
}

// webhook posts signed lines.
type webhook struct {
	writer
	Endpoint
	http *safehttp.Client
	now  func() time.Time
}

func newWebhook(w writer, e Endpoint) *webhook { return &webhook{w, e, e.client(), time.Now} }

// Deliver implements Sink.
func (w *webhook) Deliver(ctx context.Context, batch []auditformat.Entry) error {
	var body []byte
	for _, e := range batch {
		line := append(w.line(e), '\n')
		if len(body) > 0 && len(body)+len(line) > maxBody {
			if err := w.send(ctx, body); err != nil {
				return err
			}
			body = nil
		}
		body = append(body, line...)
	}
	return w.send(ctx, body)
}

func (w *webhook) send(ctx context.Context, body []byte) error {
	h := http.Header{"Content-Type": {w.mediaType()}}
	if w.Secret != "" {
		h.Set(safehttp.SignatureHeader, safehttp.Signature([]byte(w.Secret), w.now(), body))
	}
	_, err := w.post(ctx, w.http, h, body)
	return err
}

func (w *webhook) mediaType() string {
	if w.format == auditformat.CEF {
		return "text/plain; charset=utf-8"
	}
	return "application/x-ndjson"
}

// Close implements Sink. A connection is used once.
func (w *webhook) Close() error { return nil }
