package ways

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"
	"golang.org/x/net/publicsuffix"
)

// Site describes the place of sign-in, as far as passkeys depend on it.
type Site struct {
	Origin string // of the issuer
	Host   string // of the issuer, without port
	// RPID is the relying party for new passkeys, or "" if passkeys are not available.
	RPID string
	// Previous lists hosts whose passkeys still work, through Related Origin Requests (WebAuthn
	// §5.11).
	Previous []string
	Missing  Reason
}

// Reason is the reason why passkeys are not available, or "".
type Reason string

// Browsers support passkeys only for host names, and only in a secure context (WebAuthn §5.1.3).
const (
	NoHostName Reason = "passkeys_address" // the issuer is an IP address
	PlainHTTP  Reason = "passkeys_plain"   // the issuer is http, and not on localhost
	NoDomain   Reason = "passkeys_name"    // the issuer's host has no domain
)

// String describes the reason for operators.
func (r Reason) String() string {
	switch r {
	case NoHostName:
		return "the issuer is an IP address, and browsers make passkeys for host names only"
	case PlainHTTP:
		return "the issuer is plain http, and browsers make passkeys over https only (or on http://localhost)"
	case NoDomain:
		return "the issuer's host has no domain: passkeys need a full name such as auth.example.com"
	}
	return ""
}

// maxLabels is how many names of registrable domains browsers accept in the list of related origins
// (WebAuthn §5.11).
const maxLabels = 5

// NewSite returns the site of an issuer. rpID is the relying party for new passkeys. Default: the
// issuer's host. previous lists the hosts whose passkeys still work.
func NewSite(issuer, rpID string, previous []string) (Site, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" {
		return Site{}, fmt.Errorf("%q is not an issuer", issuer)
	}
	s := Site{Origin: u.Scheme + "://" + u.Host, Host: strings.ToLower(u.Hostname())}
	if err := errors.Join(s.CheckRPID(rpID), s.CheckPrevious(previous)); err != nil {
		return Site{}, err
	}
	s.Previous = previous
	switch _, err := netip.ParseAddr(s.Host); {
	case err == nil:
		s.Missing = NoHostName
	case u.Scheme != "https" && !localhost(s.Host):
		s.Missing = PlainHTTP
	case protocol.ValidateRPID(s.Host) != nil:
		s.Missing = NoDomain
	case rpID == "":
		s.RPID = s.Host
	default:
		s.RPID = rpID
	}
	return s, nil
}

func localhost(host string) bool { return host == "localhost" || strings.HasSuffix(host, ".localhost") }

// CheckRPID returns an error unless rpID can be the relying party for new passkeys. It must be the
// host or a registrable domain above it (HTML, "registrable domain suffix of or is equal to").
func (s Site) CheckRPID(rpID string) error {
	if rpID == "" || rpID == s.Host {
		return nil
	}
	if !strings.HasSuffix(s.Host, "."+rpID) || !isHost(s.Host) {
		return fmt.Errorf("%q is neither the issuer's host (%s) nor a domain above it", rpID, s.Host)
	}
	if suffix, _ := publicsuffix.PublicSuffix(rpID); suffix == rpID {
		return fmt.Errorf("%q must not be a public suffix: anybody can have a host below it", rpID)
	}
	return nil
}

// CheckPrevious returns an error unless passkeys of hosts can continue to work.
func (s Site) CheckPrevious(hosts []string) error {
	labels := map[string]bool{ownLabel(s.Host): true}
	for i, h := range hosts {
		if !isHost(h) {
			return fmt.Errorf("%q is not a host name such as auth.example.com", h)
		}
		if slices.Contains(hosts[:i], h) {
			return fmt.Errorf("%q is listed twice", h)
		}
		labels[ownLabel(h)] = true
	}
	if len(labels) > maxLabels {
		return fmt.Errorf("with the issuer they are of %d domains; browsers read %d at most", len(labels), maxLabels)
	}
	return nil
}

// isHost reports whether a text is a host name in lower case: not an address, and without port,
// scheme or path.
func isHost(s string) bool {
	u, err := url.Parse("//" + s)
	if err != nil || u.Host != s || u.Port() != "" || u.User != nil || strings.ToLower(s) != s || len(s) > 253 ||
		protocol.ValidateRPID(s) != nil {
		return false
	}
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-"
	return !slices.ContainsFunc(strings.Split(s, "."), func(l string) bool {
		return l == "" || strings.Trim(l, letters) != "" || l[0] == '-' || l[len(l)-1] == '-'
	})
}

// ownLabel returns the registrable domain of a host without its public suffix.
func ownLabel(host string) string {
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	name, _, _ := strings.Cut(domain, ".")
	return name
}

// Offered reports whether passkeys are available.
func (s Site) Offered() bool { return s.RPID != "" }

// RPIDs returns the relying parties whose passkeys are accepted, the one for new passkeys first.
func (s Site) RPIDs() []string {
	if !s.Offered() {
		return nil
	}
	out := []string{s.RPID}
	for _, h := range append([]string{s.Host}, s.Previous...) {
		if !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}

func (s Site) serves(rpID string) bool { return slices.Contains(s.RPIDs(), rpID) }

// RelatedOrigins returns the origins where passkeys of this site may be used (WebAuthn §5.11). The
// document at /.well-known/webauthn lists them. Nil means that the document does not exist.
func (s Site) RelatedOrigins() []string {
	if !s.Offered() || len(s.Previous) == 0 && s.RPID == s.Host {
		return nil
	}
	out := []string{s.Origin}
	for _, h := range s.Previous {
		if o := "https://" + h; o != s.Origin {
			out = append(out, o)
		}
	}
	return out
}
