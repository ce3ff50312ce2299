package acme

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"unicode"

	"github.com/mholt/acmez/v3/acme"
)

// explain returns how to fix the error of an order (RFC 8555 §6.7).
func explain(err error, domain string, c Config) string {
	var p acme.Problem
	if !errors.As(err, &p) {
		return explainOwn(err, c)
	}
	if c.DNS != nil {
		switch strings.TrimPrefix(p.Type, problems) {
		case "dns", "connection", "unauthorized", "incorrectResponse":
			return explainRecord(domain, c.DNS)
		}
	}
	ports := "port 443"
	if c.HTTPPort != 0 {
		ports = "ports 80 and 443"
	}
	switch strings.TrimPrefix(p.Type, problems) {
	case "dns":
		return "the name has no address that the authority finds: add an A or AAAA record for it"
	case "connection", "tls", "unauthorized", "incorrectResponse":
		return fmt.Sprintf("the authority found no server, or another one, at the name: it has to lead here, with %s "+
			"open, and no proxy before this server may answer for it", ports)
	case "rateLimited":
		return explainLimit
	case "caa":
		return "a CAA record of the name keeps this authority from issuing: change it, or tls.acme.directory"
	case "rejectedIdentifier":
		return "the authority issues no certificate for this name"
	case "serverInternal":
		return explainFault
	}
	switch { // the type is unknown
	case p.Status == http.StatusTooManyRequests:
		return explainLimit
	case p.Status >= http.StatusInternalServerError:
		return explainFault
	}
	return "it is tried again by itself"
}

const (
	explainLimit = "the authority has had too many requests for this name: it is tried again by itself, do not restart"
	explainFault = "the authority has a fault of its own: it is tried again by itself"
)

// problems is the prefix of ACME error types (RFC 8555 §6.7).
const problems = "urn:ietf:params:acme:error:"

// explainOwn explains an error that the authority did not send.
func explainOwn(err error, c Config) string {
	var record *dnsError
	var dns *net.DNSError
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &record):
		return explainWriting(record, c.DNS)
	case errors.As(err, &untrusted):
		return "the certificate of " + c.Directory + " is of an authority that is not known here: name its roots in " +
			"tls.acme.roots"
	case errors.Is(err, errAnswer):
		return "what answers at " + c.Directory + " is no certificate authority: correct tls.acme.directory"
	case errors.As(err, &dns), errors.Is(err, context.DeadlineExceeded), isNetwork(err):
		return "the certificate authority cannot be reached from here: open the way out to " + c.Directory
	}
	return "it is tried again by itself"
}

// explainRecord explains why the authority may not find a record.
func explainRecord(domain string, d *DNS) string {
	at := "_acme-challenge." + strings.TrimPrefix(domain, "*.")
	if d.Name != "" {
		return "the authority did not find the record for the challenge: " + at + " has to lead to " + d.Name +
			", by a CNAME record"
	}
	return "the authority did not find the record for the challenge at " + at +
		": it has to be in the zone that tls.acme.dns writes to"
}

// explainWriting explains why a record could not be published.
func explainWriting(e *dnsError, d *DNS) string {
	switch {
	case e.seen:
		return "a name server of the zone does not show the record for the challenge: see that all of them get changes " +
			"within two minutes, and that they can be reached from here"
	case d.Provider == RFC2136:
		return "the record for the challenge cannot be written: see that " + d.Server + " can be reached, knows the key " +
			d.KeyName + " and lets it change TXT records of the zone"
	}
	return "the record for the challenge cannot be written: see that tls.acme.dns.secret is a token of " + d.Provider +
		" that may read the zone and edit its DNS"
}

func isNetwork(err error) bool {
	var e net.Error
	return errors.As(err, &e)
}

// maxReason limits the text of others in the log, in bytes.
const maxReason = 300

// reason returns an error's text, cleaned for the log.
func reason(err error) string {
	if err == nil {
		return ""
	}
	return cleaned(err.Error())
}

// cleaned returns text as one printable line of at most about maxReason bytes.
func cleaned(text string) string {
	line := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if len(line) > maxReason {
		line = strings.ToValidUTF8(line[:maxReason], "") + "..."
	}
	return line
}
