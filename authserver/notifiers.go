package authserver

import (
	"context"
	"net/netip"

	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/text"
)

// Mailer sends mail to users, at the addresses that the operator has set.
type Mailer interface {
	// Send delivers one message, in plain text and in HTML.
	Send(ctx context.Context, to, subject, text, html string) error
}

// Webhook is the URL that receives changes of accounts. The zero value sends nothing.
type Webhook struct {
	URL    string
	Secret string // signs the posted body (HMAC-SHA256)
	// Networks lists the private networks that the URL may resolve to.
	Networks []netip.Prefix
}

func newNotifier(c Config, texts *text.Catalogues) *notice.Notifier {
	cfg := notice.Config{
		Store: c.Store, Issuer: c.Issuer, Product: c.ProductName, Audit: c.Audit, Logger: c.Logger, Now: c.Now,
		Texts: func() (*text.Catalogues, error) { return texts, nil },
	}
	if c.Mailer != nil {
		cfg.Mailer = c.Mailer
	}
	if c.Webhook.URL != "" {
		cfg.Hook = notice.NewWebhook(c.Webhook.URL, c.Webhook.Secret, c.Webhook.Networks)
	}
	return notice.New(cfg)
}
