package main

import (
	"context"
	"slices"

	"github.com/mcp-authd/mcp-authd/storage"
)

// passkeys says whether passkeys are offered, and who loses what by the host name that is configured
// (PE-01, PE-02).
func (d *doctor) passkeys(ctx context.Context) {
	site, err := d.app.config.Site()
	if err != nil {
		d.fail("passkeys", "", "%s", err)
		return
	}
	if site.Offered() {
		d.ok("passkeys", "offered, for %s", site.RPID)
	} else {
		d.add("passkeys", "skipped", "to offer them, give the server a host name and TLS",
			"not offered: %s", site.Missing)
	}
	if what := d.app.config.Login.Links.Warning(); what != "" {
		d.warn("recovery", "leave it at a day, or at what it takes your people to read their mail", "%s", what)
	}
	if !d.current {
		return
	}
	hosts, err := d.app.store.PasskeyHosts(ctx,
		storage.Admission{Passwords: d.app.config.Login.Local, Providers: d.app.config.ProviderIDs()})
	if err != nil {
		d.fail("passkeys", "", "they cannot be counted: %s", oneLine(err))
		return
	}
	for _, h := range hosts {
		if slices.Contains(site.RPIDs(), h.RPID) {
			d.ok("passkeys", "%s made for %s; another host name loses them, unless login.passkeys.previous_hosts has this one%s",
				count(h.Passkeys, "passkey is", "passkeys are"), h.RPID, only(h.Only))
			continue
		}
		d.warn("passkeys",
			"add the host to login.passkeys.previous_hosts, and let it serve /.well-known/webauthn as this server does",
			"%s of %s made for %s, which is not served: they let no one in%s", count(h.Passkeys, "passkey", "passkeys"),
			count(h.People, "person is", "people are"), h.RPID, only(h.Only))
	}
}

// only says how many people would be locked out.
func only(n int) string {
	if n == 0 {
		return ""
	}
	return "; " + count(n, "person has", "people have") + " no other way in"
}
