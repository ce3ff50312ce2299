package authserver

import (
	"context"
	"net/netip"

	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/web/text"
)

// Mailer sends mail to people, to the addresses that the operator has given them.
type Mailer interface {
	// Send delivers one message, in plain text and in HTML.
	Send(ctx context.Context, to, subject, text, html string) error
}

// Webhook is where the operator is told of changes to accounts. The zero value sends nothing.
type Webhook struct {
	URL    string
	Secret string // signs what is posted (HMAC-SHA256)
	// Networks are those that the URL may lead to, though they are private.
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
