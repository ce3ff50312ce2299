package config

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/mail"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Mail configures mail to users.
type Mail struct {
	SMTP SMTP `yaml:"smtp"`
}

// SMTP configures a mail server. Without an address, no mail is sent.
type SMTP struct {
	Address string `yaml:"address"` // host:port
	// TLS is starttls, tls, or none for a server that requires no password.
	TLS          string `yaml:"tls"`
	Username     string `yaml:"username"`
	Password     Secret `yaml:"password"`
	PasswordFile string `yaml:"password_file" env:"-"`
	From         string `yaml:"from"`
}

// Notices configures other notifications of account changes.
type Notices struct {
	Webhook Webhook `yaml:"webhook"`
}

// Webhook configures where account changes are posted, signed. It is off without a URL.
type Webhook struct {
	URL        string `yaml:"url"`
	Secret     Secret `yaml:"secret"`
	SecretFile string `yaml:"secret_file" env:"-"`
	// Networks lists private networks that may contain the URL.
	Networks []string `yaml:"networks"`
}

// fileSecret is a secret that may be in a separate file.
type fileSecret struct {
	key   string
	value *Secret
	file  *string
}

func (c *Config) fileSecrets() []fileSecret {
	out := []fileSecret{
		{"mail.smtp.password", &c.Mail.SMTP.Password, &c.Mail.SMTP.PasswordFile},
		{"notices.webhook.secret", &c.Notices.Webhook.Secret, &c.Notices.Webhook.SecretFile},
		{"tls.acme.dns.secret", &c.TLS.ACME.DNS.Secret, &c.TLS.ACME.DNS.SecretFile},
	}
	for i := range c.Events.Receivers {
		r := &c.Events.Receivers[i]
		out = append(out, fileSecret{
			fmt.Sprintf("events.receivers.%d.bearer_token", i), &r.BearerToken, &r.BearerTokenFile,
		})
	}
	for i := range c.Audit.Sinks {
		s := &c.Audit.Sinks[i]
		out = append(out, fileSecret{fmt.Sprintf("audit.sinks.%d.secret", i), &s.Secret, &s.SecretFile})
	}
	return out
}

// Configured reports whether a mail server is configured.
func (s SMTP) Configured() bool { return s.Address != "" }

// Sender returns the sender of mails.
func (s SMTP) Sender() (*mail.Sender, error) {
	return mail.New(mail.Config{
		Address: s.Address, TLS: mail.TLS(s.TLS), Username: s.Username, Password: string(s.Password), From: s.From,
	})
}

// Server returns the webhook for the server. Validate has checked the networks.
func (w Webhook) Server() authserver.Webhook {
	out := authserver.Webhook{URL: w.URL, Secret: string(w.Secret)}
	for _, n := range w.Networks {
		if p, err := parseNetwork(n); err == nil {
			out.Networks = append(out.Networks, p)
		}
	}
	return out
}

// minWebhookSecret is the digest length, the recommended minimum for an HMAC key (RFC 2104 §3).
const minWebhookSecret = 32

func (c *Config) validateNotices(add func(string, string, ...any)) {
	s := c.Mail.SMTP
	switch _, err := s.Sender(); {
	case s.Configured() && err != nil:
		key, text, _ := strings.Cut(err.Error(), ": ")
		add("mail.smtp."+key, "%s", text)
	case !s.Configured() && (s.From != "" || s.Username != "" || s.Password != ""):
		add("mail.smtp.address", "is missing: a server such as smtp.example.com:587")
	}
	w := c.Notices.Webhook
	for i, n := range w.Networks {
		if _, err := parseNetwork(n); err != nil {
			add(fmt.Sprintf("notices.webhook.networks[%d]", i), "%q is not an address or network such as 10.0.0.0/8", n)
		}
	}
	if w.URL == "" {
		return
	}
	u, err := url.Parse(w.URL)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http":
		add("notices.webhook.url", "it is not a URL such as https://example.com/hook") // the URL may contain a secret
	case u.Scheme == "http" && !oauth.IsLoopbackHost(u.Hostname()):
		add("notices.webhook.url", "is http: names of people are sent over TLS only, or on this machine")
	}
	if len(w.Secret) < minWebhookSecret {
		add("notices.webhook.secret", "needs at least %d characters, with which the receiver checks who sends",
			minWebhookSecret)
	}
}
