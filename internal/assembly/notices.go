package assembly

import (
	"fmt"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/text"
)

// mailer returns the sender of mail through the configured server, or nil.
func (p Parts) mailer() (authserver.Mailer, error) {
	smtp := p.Config.Mail.SMTP
	if !smtp.Configured() {
		return nil, nil
	}
	sender, err := smtp.Sender()
	if err != nil {
		return nil, fmt.Errorf("mail.smtp: %w", err)
	}
	return sender, nil
}

// texts returns the texts of mails, including configured ones.
func (p Parts) texts() (*text.Catalogues, error) {
	branding, err := p.Config.Branding.Pages()
	if err != nil {
		return nil, err
	}
	return text.Load(branding.Texts)
}

// Notifier returns a notifier that tells users about the changes of a command, as the server does
// for its own.
func (p Parts) Notifier() (*notice.Notifier, error) {
	c := notice.Config{
		Store: p.Store, Issuer: p.Config.Issuer, Product: p.Config.Branding.Name, Texts: p.texts, Audit: p.Audit,
		Logger: p.Log, Now: p.Now,
	}
	mailer, err := p.mailer()
	if err != nil {
		return nil, err
	}
	if mailer != nil {
		c.Mailer = mailer
	}
	if hook := p.Config.Notices.Webhook.Server(); hook.URL != "" {
		c.Hook = notice.NewWebhook(hook.URL, hook.Secret, hook.Networks)
	}
	return notice.New(c), nil
}
