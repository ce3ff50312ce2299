package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/transmit"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Events configures who is notified of revoked access.
type Events struct {
	Receivers []EventReceiver `yaml:"receivers"`
}

// EventReceiver is a destination of pushed security events.
type EventReceiver struct {
	ID       string `yaml:"id"` // identifies its queue: never change it
	URL      string `yaml:"url"`
	Audience string `yaml:"audience"`
	// Kinds lists the events to send; empty for all.
	Kinds           []string `yaml:"kinds"`
	BearerToken     Secret   `yaml:"bearer_token"`
	BearerTokenFile string   `yaml:"bearer_token_file" env:"-"`
	Networks        []string `yaml:"networks"`
}

const maxReceivers = 32

var receiverID = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$`)

// Receivers returns the receivers of security events. Validate has checked the networks.
func (c *Config) Receivers() (out []transmit.Receiver) {
	for _, r := range c.Events.Receivers {
		to := transmit.Receiver{
			ID: r.ID, URL: r.URL, Audience: r.Audience, Kinds: r.Kinds, Bearer: string(r.BearerToken),
		}
		for _, n := range r.Networks {
			if p, err := parseNetwork(n); err == nil {
				to.Networks = append(to.Networks, p)
			}
		}
		out = append(out, to)
	}
	return out
}

func (c *Config) validateEvents(add func(string, string, ...any)) {
	if n := len(c.Events.Receivers); n > maxReceivers {
		add("events.receivers", "are %d, and may be %d", n, maxReceivers)
	}
	ids := map[string]bool{}
	for i, r := range c.Events.Receivers {
		key := fmt.Sprintf("events.receivers[%d].", i)
		switch {
		case !receiverID.MatchString(r.ID):
			add(key+"id", "must be lower case letters, digits and hyphens, at most 40")
		case ids[r.ID]:
			add(key+"id", "%q is listed twice", r.ID)
		}
		ids[r.ID] = true
		r.validate(func(sub, format string, args ...any) { add(key+sub, format, args...) })
	}
}

func (r EventReceiver) validate(add func(string, string, ...any)) {
	u, err := url.Parse(r.URL)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http":
		add("url", "it is not a URL such as https://example.com/events") // the URL may contain a secret
	case u.Scheme == "http" && !oauth.IsLoopbackHost(u.Hostname()):
		add("url", "is http: events about people are sent over TLS only, or on this machine")
	}
	if r.Audience == "" {
		add("audience", "is missing: what the receiver expects in aud, such as its own URL")
	}
	for i, k := range r.Kinds {
		if !slices.Contains(transmit.Kinds, k) {
			add(fmt.Sprintf("kinds[%d]", i), "%q is not one of %s", k, strings.Join(transmit.Kinds, ", "))
		}
	}
	if strings.ContainsAny(string(r.BearerToken), " \r\n") {
		add("bearer_token", "must not have spaces or line ends")
	}
	for i, n := range r.Networks {
		if _, err := parseNetwork(n); err != nil {
			add(fmt.Sprintf("networks[%d]", i), "%q is not an address or network such as 10.0.0.0/8", n)
		}
	}
}
