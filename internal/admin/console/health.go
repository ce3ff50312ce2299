package console

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/pages"
)

// level is the tone of a finding.
var level = map[string]string{
	admin.LevelOK: "good", admin.LevelWarning: "warn", admin.LevelFail: "bad", "problem": "bad",
}

// health shows the state of the installation.
func (v *view) health(h admin.Health, p *pages.Console) {
	p.Live, p.Badges = true, []pages.ConsoleBadge{{Text: "well", Tone: "good"}}
	found, warnings := pages.ConsoleFindings{None: "Nothing was looked at."}, 0
	for _, f := range h.Findings {
		found.Findings = append(found.Findings, v.finding(f))
		if f.Level == admin.LevelWarning {
			warnings++
		}
	}
	switch {
	case !h.OK:
		p.Badges = []pages.ConsoleBadge{{Text: "not well", Tone: "bad"}}
	case warnings > 0:
		p.Badges = []pages.ConsoleBadge{{Text: counted(warnings, "warning", "warnings"), Tone: "warn"}}
	}
	now := v.cfg.Now()
	signed := pages.ConsoleCell{At: h.AuditSignedAt}
	if !h.AuditSignedAt.IsZero() {
		signed.Text = exactly(h.AuditSignedAt, now)
	}
	facts := pages.ConsoleFacts{Title: "This installation", Facts: filled(
		pages.ConsoleFact{Name: "Issuer", Value: pages.ConsoleCell{Text: h.Issuer, Code: true}},
		pages.ConsoleFact{Name: "Version", Value: pages.ConsoleCell{Text: h.Version}},
		pages.ConsoleFact{
			Name: "Entries of the audit log", Value: pages.ConsoleCell{Text: grouped(int(h.AuditEntries))},
		},
		pages.ConsoleFact{Name: "Of which are signed", Value: pages.ConsoleCell{Text: grouped(int(h.AuditSigned))}},
		pages.ConsoleFact{Name: "Last checkpoint", Value: signed},
	)}
	p.Parts = append(p.Parts, found, v.replicas(h.Replicas), facts)
	keys := table{title: "Signing keys", noun: "keys", columns: nounOf("keys").columns}
	sinks, receivers := nounOf("audit").lists["audit sinks"], nounOf("events")
	p.Parts = append(p.Parts, v.table(keys, valueOf(h.Keys), nil))
	ofAll := func(t table, items reflect.Value) {
		if items.Len() > 0 {
			shown := v.table(t, items, nil)
			shown.Lead = "What waits is in the database, and is of all replicas."
			p.Parts = append(p.Parts, shown)
		}
	}
	sinks.title = "Log destinations"
	ofAll(sinks, valueOf(h.Sinks))
	ofAll(table{title: receivers.title, noun: receivers.name, columns: receivers.columns}, valueOf(h.Receivers))
}

// replicas shows which servers use the database.
func (v *view) replicas(all []admin.Replica) pages.ConsoleTable {
	t := v.table(table{
		title: "Replicas", noun: health.name,
		columns: []string{
			"name", "state", "version", "started_at", "seen_at", "audit_waiting", "clock_behind_ms",
		},
		empty: pages.ConsoleHint{
			Text: "No server has told this database that it runs. It does so within seconds of its start; its log says " +
				"why it does not.",
		},
	}, valueOf(all), nil)
	switch len(all) {
	case 0:
	case 1:
		t.Lead = "One server has this database. On PostgreSQL there can be more, with the same configuration and the " +
			"same secret_key; each is listed here while it runs."
	default:
		t.Lead = "The servers of this database, as they tell of themselves every 15 seconds. What waits for the audit " +
			"log is of each of them. One that was lost is listed for a day."
	}
	return t
}

// replicaName shows the name of a replica, with its address.
func replicaName(_ *view, item []member, c *pages.ConsoleCell) {
	if text(item, "this") == "true" {
		c.Badges = []pages.ConsoleBadge{{Text: "shows this page"}}
	}
	c.Note = text(item, "address")
}

// auditOfReplica shows how many entries of a replica wait for the audit log, and how many were
// lost.
func auditOfReplica(_ *view, item []member, c *pages.ConsoleCell) {
	if c.Text == "0" {
		c.Text = ""
	} else if c.Text != "" {
		c.Text += " waiting"
	}
	if lost := text(item, "audit_lost"); lost != "" && lost != "0" {
		c.Badges = []pages.ConsoleBadge{{Text: lost + " lost", Tone: "bad"}}
	}
}

// clockBehind shows how far a clock is off, from one second on.
func clockBehind(_ *view, _ []member, c *pages.ConsoleCell) {
	ms, err := strconv.ParseInt(c.Text, 10, 64)
	if c.Text = ""; err == nil && (ms >= 1000 || ms <= -1000) {
		c.Text = (time.Duration(ms) * time.Millisecond).Round(100 * time.Millisecond).String()
	}
}

// pageOfCheck maps each check to the list that shows the subject of its findings.
var pageOfCheck = map[string]string{
	"audit": "audit sinks", "events": "events list", "keys": "keys list", "tools": "resource list",
	"mail": "mail test", "resources": "resource list",
}

// finding shows a finding, with a link to the page that can fix it, if any.
func (v *view) finding(f admin.Finding) pages.ConsoleFinding {
	out := pages.ConsoleFinding{
		Tone: level[f.Level], Mark: f.Level, Name: caption(f.Check),
		Text: capitalized(f.What), Next: capitalized(f.Advice),
	}
	if f.Check == "mail" { // as a field it is an address
		out.Name = "Mail"
	}
	if page := pageOfCheck[f.Check]; page != "" && f.Level != admin.LevelOK && v.may(page) {
		out.URL = v.url(page, nil)
	}
	if f.Resource != "" && v.may("resource tools") {
		out.URL = v.url("resource tools", url.Values{"uri": {f.Resource}})
	}
	return out
}

// capitalized returns a text with a capital first letter.
func capitalized(text string) string {
	first, rest := utf8.DecodeRuneInString(text)
	if text == "" || strings.ContainsAny(text[rest:min(len(text), 24)], "._=") { // starts with an identifier
		return text
	}
	return string(unicode.ToUpper(first)) + text[rest:]
}

// provider shows how a provider responds.
func (v *view) provider(d admin.ProviderDetails, p *pages.Console) {
	p.Badges = []pages.ConsoleBadge{{Text: "answers", Tone: "good"}}
	if !d.OK {
		p.Badges = []pages.ConsoleBadge{{Text: "no person can sign in there", Tone: "bad"}}
	}
	found := pages.ConsoleFindings{Title: "Asked just now", None: "Nothing was found."}
	for _, f := range d.Findings {
		found.Findings = append(found.Findings, pages.ConsoleFinding{
			Tone: level[f.Level], Mark: f.Level, Name: capitalized(f.What), Next: capitalized(f.Advice),
		})
	}
	p.Parts = append(p.Parts, found)
	n := nounOf("provider")
	p.Parts = append(p.Parts, v.parts(n, members(valueOf([]admin.Provider{d.Provider}).Index(0)), nil)...)
	if d.LogoutURI != "" {
		p.Parts = append(p.Parts, pages.ConsoleText{
			Title: "Back-channel logout", Lead: "Where the provider says that a session has ended.", Text: d.LogoutURI,
		})
	}
}

// token shows the claims of a token, and why it is not accepted.
func (v *view) token(t admin.TokenInspection, p *pages.Console) {
	p.Title, p.Badges = "Token", []pages.ConsoleBadge{{Text: "accepted", Tone: "good"}}
	if !t.Active {
		p.Badges = []pages.ConsoleBadge{{Text: "refused", Tone: "bad"}}
		found := pages.ConsoleFindings{Title: "Why it is refused"}
		for _, why := range t.Why {
			found.Findings = append(found.Findings, pages.ConsoleFinding{Tone: "bad", Name: capitalized(why)})
		}
		p.Parts = append(p.Parts, found)
	}
	person := pages.ConsoleCell{Text: t.UserName}
	personLink(v, nil, &person)
	p.Parts = append(p.Parts, pages.ConsoleFacts{Facts: filled(
		pages.ConsoleFact{Name: "Person", Value: person},
		pages.ConsoleFact{Name: "Client", Value: pages.ConsoleCell{Text: t.ClientName, Said: t.ClientName != ""}},
		pages.ConsoleFact{Name: "Algorithm", Value: pages.ConsoleCell{Text: t.Header.Algorithm, Code: true}},
		pages.ConsoleFact{Name: "Key ID", Value: pages.ConsoleCell{Text: t.Header.KeyID, Code: true}},
		pages.ConsoleFact{Name: "Type", Value: pages.ConsoleCell{Text: t.Header.Type, Code: true}},
	)})
	if claims, err := json.MarshalIndent(t.Claims, "", "  "); err == nil && len(t.Claims) > 0 {
		p.Parts = append(p.Parts, pages.ConsoleText{
			Title: "Claims", Lead: "They are as true as the signature.", Text: strings.TrimSpace(string(claims)),
		})
	}
}
