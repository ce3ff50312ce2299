package auditformat

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// cefSeverities maps the severities of OCSF to CEF's scale of 0 to 10.
var cefSeverities = map[Severity]string{Informational: "1", Low: "4", Medium: "6", High: "8"}

// places lists the CEF keys for our fields.
var places = []struct{ key, field string }{
	{"suid", "user"}, {"suser", "user_name"}, {"outcome", "outcome"}, {"reason", "reason"}, {"request", "resource"},
}

// labelled lists the fields that use the numbered texts of CEF, each with a label.
var labelled = []struct{ field, label string }{
	{"client_id", "client id"}, {"client_name", "client name"}, {"grant", "grant"}, {"scope", "scope"},
	{"tool", "tool"},
}

// cef returns an entry in CEF 0. A field without a standard key gets a vendor key, as in the
// specification.
func cef(s Source, e Entry) []byte {
	e = e.visible()
	m, f := meaningOf(e), newFields(e)
	var b strings.Builder
	b.WriteString("CEF:0|mcp-authd|mcp-authd")
	for _, part := range []string{s.Version, e.Event, m.title, cefSeverities[m.severity]} {
		b.WriteString("|" + cefHeader.Replace(part))
	}
	b.WriteByte('|')
	pair := func(key, value string) {
		if value != "" {
			b.WriteString(key + "=" + cefValue.Replace(value) + " ")
		}
	}
	pair("rt", strconv.FormatInt(e.At.UnixMilli(), 10))
	pair("externalId", strconv.FormatInt(e.Index, 10))
	pair("dvchost", s.host())
	if f.all["outcome"] == "" {
		pair("outcome", map[bool]string{false: "success", true: "failure"}[m.failed])
	}
	for _, p := range places {
		pair(p.key, f.take(p.field))
	}
	remote := f.take("remote")
	if a, err := netip.ParseAddr(remote); err == nil && a.Is6() {
		pair("c6a2", remote)
		pair("c6a2Label", "Source IPv6 Address")
	} else {
		pair("src", remote)
	}
	for i, l := range labelled {
		if value := f.take(l.field); value != "" {
			pair("cs"+strconv.Itoa(i+1), value)
			pair("cs"+strconv.Itoa(i+1)+"Label", l.label)
		}
	}
	pair("cs6", e.Leaf.String())
	pair("cs6Label", "leaf")
	for _, name := range slices.Sorted(maps.Keys(f.left)) {
		pair(vendorKey(name), f.left[name])
	}
	return []byte(strings.TrimSuffix(b.String(), " "))
}

var (
	cefHeader = strings.NewReplacer(`\`, `\\`, "|", `\|`, "\r\n", " ", "\n", " ", "\r", " ")
	cefValue  = strings.NewReplacer(`\`, `\\`, "=", `\=`, "\r\n", `\n`, "\n", `\n`, "\r", `\r`)
)

// vendorKey returns the key of our field, such as McpauthdTokenId for token_id. Vendor keys start
// with the vendor's name, and contain only letters and digits.
func vendorKey(field string) string {
	var b strings.Builder
	b.WriteString("Mcpauthd")
	for _, word := range strings.FieldsFunc(field, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
