package acme

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"unicode"

	"github.com/mholt/acmez/v3/acme"
)

// explain says what the operator can do about an error of an order (RFC 8555 §6.7).
func explain(err error, c Config) string {
	var p acme.Problem
	if !errors.As(err, &p) {
		var dns *net.DNSError
		if errors.As(err, &dns) || errors.Is(err, context.DeadlineExceeded) || isNetwork(err) {
			return "the certificate authority cannot be reached from here: open the way out to " + c.Directory
		}
		return "it is tried again by itself"
	}
	ports := "port 443"
	if c.HTTPPort != 0 {
		ports = "ports 80 and 443"
	}
	switch strings.TrimPrefix(p.Type, "urn:ietf:params:acme:error:") {
	case "dns":
		return "the name has no address that the authority finds: add an A or AAAA record for it"
	case "connection", "tls", "unauthorized", "incorrectResponse":
		return fmt.Sprintf("the authority found nobody, or another server, at the name: it has to lead here, with %s "+
			"open, and no proxy before this server may answer for it", ports)
	case "rateLimited":
		return "the authority has had too many requests for this name: it is tried again by itself, do not restart"
	case "caa":
		return "a CAA record of the name keeps this authority from issuing: change it, or tls.acme.directory"
	case "rejectedIdentifier":
		return "the authority issues no certificate for this name"
	case "serverInternal":
		return "the authority has a fault of its own: it is tried again by itself"
	}
	return "it is tried again by itself"
}

func isNetwork(err error) bool {
	var e net.Error
	return errors.As(err, &e)
}

// maxReason bounds what others' words take in the log, in bytes.
const maxReason = 300

// reason is an error in one line, without characters that change how a log is shown.
func reason(err error) string {
	if err == nil {
		return ""
	}
	line := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, err.Error())
	if len(line) > maxReason {
		line = strings.ToValidUTF8(line[:maxReason], "") + "..."
	}
	return line
}
