package acme

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"slices"
	"time"
)

const (
	watchEvery = 15 * time.Second
	warnEvery  = 12 * time.Hour
)

// State describes the certificate of a domain.
type State struct {
	Domain              string
	NotBefore, NotAfter time.Time // zero without a certificate
	Failed              bool      // the last attempt here failed, or a warning was just logged
}

// Ends reports whether less than two weeks and less than a quarter of the lifetime are left.
// Renewal starts at a third.
func Ends(notBefore, notAfter, now time.Time) bool {
	left := notAfter.Sub(now)
	return left < 14*24*time.Hour && left < notAfter.Sub(notBefore)/4
}

// watch loads certificates of other replicas, reports and warns, until ctx ends.
func (m *Manager) watch(ctx context.Context) {
	every := watchEvery
	if m.c.RenewCheck != 0 {
		every = min(every, m.c.RenewCheck)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	warned := make(map[string]time.Time)
	for {
		for _, domain := range m.c.Domains {
			m.look(ctx, domain, warned)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look checks a domain. It loads a certificate of another replica at once; certmagic would wait for
// its own next attempt, perhaps for hours.
func (m *Manager) look(ctx context.Context, domain string, warned map[string]time.Time) {
	leaf := m.served(domain)
	if leaf == nil {
		if _, err := m.magic.CacheManagedCertificate(ctx, domain); err == nil {
			leaf = m.served(domain)
		}
	}
	now, state := m.c.Now(), State{Domain: domain}
	advice := m.failure(domain)
	if leaf != nil {
		state.NotBefore, state.NotAfter = leaf.NotBefore, leaf.NotAfter
		if leaf.NotAfter.Sub(now) > leaf.NotAfter.Sub(leaf.NotBefore)/2 {
			m.note(domain, "") // another replica renewed it
			advice = ""
		}
		if Ends(leaf.NotBefore, leaf.NotAfter, now) && now.Sub(warned[domain]) > warnEvery {
			warned[domain] = now
			if advice == "" {
				advice = "see in this log, and in those of other replicas, why it is not renewed"
			}
			m.c.Log.Warn("the certificate ends soon, and is not renewed; "+advice, "domain", domain,
				"valid_until", leaf.NotAfter)
		}
	}
	state.Failed = advice != ""
	if m.c.Measure != nil {
		m.c.Measure(state)
	}
}

// served returns the newest certificate for a domain, or nil.
func (m *Manager) served(domain string) (newest *x509.Certificate) {
	for _, c := range m.cache.AllMatchingCertificates(domain) {
		leaf := c.Leaf
		if leaf == nil || !slices.Contains(c.Names, domain) || isChallenge(leaf) {
			continue
		}
		if newest == nil || leaf.NotAfter.After(newest.NotAfter) {
			newest = leaf
		}
	}
	return newest
}

// identifier is the extension that marks a challenge certificate (RFC 8737 §3).
var identifier = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 31}

// isChallenge reports whether a certificate answers a challenge.
func isChallenge(leaf *x509.Certificate) bool {
	return slices.ContainsFunc(leaf.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(identifier) })
}

// note records the advice after an attempt; "" means success.
func (m *Manager) note(domain, advice string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if advice == "" {
		delete(m.failed, domain)
		return
	}
	m.failed[domain] = advice
}

func (m *Manager) failure(domain string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed[domain]
}
