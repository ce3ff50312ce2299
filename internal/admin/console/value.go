package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/pages"
)

// member is a field of an input or output, by its JSON name.
type member struct {
	name  string
	hint  string // of its schema
	given bool   // required
	clear bool   // an empty list differs from an absent one
	value reflect.Value
	// secret is set if the value is shown once, and masked in forms.
	secret bool
}

// members returns the fields of a struct, including those of embedded structs.
func members(v reflect.Value) (out []member) {
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous, !f.IsExported(), name == "-":
			continue
		case name == "":
			name = strings.ToLower(f.Name)
		}
		out = append(out, member{
			name: name, hint: f.Tag.Get("jsonschema"), given: !strings.Contains(options, "omit"),
			clear: strings.Contains(options, "omitzero") && f.Type.Kind() == reflect.Slice,
			value: v.FieldByIndex(f.Index), secret: f.Tag.Get("secret") != "",
		})
	}
	return out
}

// valueOf returns a list as operations return it.
func valueOf[T any](items []T) reflect.Value { return reflect.ValueOf(items) }

// memberOf finds a field by name.
func memberOf(all []member, name string) (member, bool) {
	for _, m := range all {
		if m.name == name {
			return m, true
		}
	}
	return member{}, false
}

// plain gives the spelling of special words in names.
var plain = map[string]string{
	"id": "ID", "uri": "URL", "url": "URL", "mcp": "MCP", "jwks": "JWKS", "ip": "IP", "ok": "OK", "dpop": "DPoP",
	"acr": "ACR", "ttl": "TTL", "sha256": "SHA-256", "kid": "key ID", "alg": "algorithm",
	"tls": "TLS", "json": "JSON", "par": "PAR",
}

// labels gives captions for fields whose name is not a good caption.
var labels = map[string]string{
	"created_at":    "Created",
	"last_login_at": "Last sign-in",
	"last_used_at":  "Last used",
	"first_used_at": "First used",
	"started_at":    "Began",
	"ended_at":      "Ended",
	"expires_at":    "Expires",
	"activates_at":  "Signs from",
	"activated_at":  "Signed since",
	"retired_at":    "Signed until",
	"revoked_at":    "Ended",
	"client_id":     "Client",
	"user_id":       "Account ID",
	"grant_id":      "Grant",
	"client_name":   "Client",
	"mail":          "Mail address",
	"admin":         "administrator",
	"at":            "When",
	"uri":           "URL",
	"paused_at":     "Paused",
	"proved_at":     "Last proof",
	"seen_at":       "Last seen",
	"redirect_uris": "Redirect URIs",
	"person":        "User",
	"disabled":      "State",
	"user_name":     "User",
	"connector":     "Provider",
	"kid":           "Key ID",
	"resource":      "MCP server",
	"rp_id":         "Host",
	"not_before":    "Works from",
	"auth_method":   "Authentication",

	"metadata_read_at": "Metadata read",
	"metadata_next_at": "Metadata read again from",
	"keys_read_at":     "Keys read",
	"failed_at":        "Last failure",

	"audit_waiting":   "Audit entries",
	"unproven":        "Not proven",
	"clock_behind_ms": "Clock is behind by",
	"last_read":       "Its metadata document",
	"policy":          "Rules for this client",
	"read_at":         "Read",
	"read_again_at":   "Read again from",
	"failure":         "Reason of the last failure",
}

// caption returns the readable name of a field.
func caption(name string) string {
	if s, ok := labels[name]; ok {
		return strings.ToUpper(s[:1]) + s[1:]
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || r == ' ' })
	for i, w := range words {
		if p, ok := plain[w]; ok {
			words[i] = p
		}
	}
	s := strings.Join(words, " ")
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// isCode reports whether a field holds text that users copy or compare letter by letter.
func isCode(name string) bool {
	for _, s := range []string{
		"id", "uri", "uris", "url", "reference", "kid", "hash", "leaf", "root", "resource", "resources", "issuer",
		"digest", "sha256", "jwks", "subject", "scopes", "scope", "aliases", "audience", "jti", "thumbprint",
	} {
		if name == s || strings.HasSuffix(name, "_"+s) {
			return true
		}
	}
	return false
}

// links maps fields that name another object to the operation that shows it, and its field.
var links = map[string][2]string{
	"user": {"user show", "name"}, "username": {"user show", "name"}, "person": {"user show", "name"},
	"client_id": {"client show", "id"}, "client": {"client show", "id"},
	"grant": {"grant show", "id"}, "grant_id": {"grant show", "id"},
	"resource": {"resource show", "uri"},
}

// cell returns the cell for a field of an item of a noun.
func (v *view) cell(n noun, item []member, m member) pages.ConsoleCell {
	c := v.plainCell(m, n.badges)
	v.link(m.name, &c)
	for _, shapes := range []map[string]shape{n.shapes, common} {
		if change, ok := shapes[m.name]; ok {
			change(v, item, &c)
			break
		}
	}
	return c
}

// plainCell returns a cell according to the type of the value.
func (v *view) plainCell(m member, badges map[string]string) pages.ConsoleCell {
	value := m.value
	for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
		if value.IsNil() {
			return pages.ConsoleCell{}
		}
		value = value.Elem()
	}
	c := pages.ConsoleCell{Code: isCode(m.name)}
	switch x := value.Interface().(type) {
	case time.Time:
		if c.At = x; !x.IsZero() {
			c.Text = exactly(x, v.cfg.Now())
		}
	case time.Duration:
		if x != 0 {
			c.Text = x.String()
		}
	case json.RawMessage:
		c.Text, c.Code = string(x), true
	case []string:
		c.List = x
	case bool:
		if tone, ok := badges[m.name]; ok && x {
			c.Badges = []pages.ConsoleBadge{{Text: strings.ReplaceAll(m.name, "_", " "), Tone: tone}}
		} else if !ok {
			c.Text = map[bool]string{true: "yes", false: "no"}[x]
		}
	case admin.Party:
		c.Code = false
		v.party(x, &c)
	case fmt.Stringer:
		c.Text = x.String()
	default:
		c.Text = scalar(value)
		if isGroup(value) {
			c.Text = inLine(value)
		}
	}
	return c
}

// inLine returns the fields of a struct in one line.
func inLine(v reflect.Value) string {
	var out []string
	for _, m := range members(v) {
		if !m.value.IsZero() {
			out = append(out, scalar(m.value))
		}
	}
	return strings.Join(out, ", ")
}

// scalar returns a simple value as text, and others as JSON.
func scalar(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Struct, reflect.Slice, reflect.Map:
		if v.IsZero() {
			return ""
		}
		b, err := json.Marshal(v.Interface())
		if err != nil {
			return ""
		}
		return string(b)
	}
	return fmt.Sprint(v.Interface())
}

// editable returns a value as text to edit: indented JSON.
func editable(v reflect.Value) string {
	text := scalar(v)
	var out bytes.Buffer
	if v.Kind() != reflect.String && json.Indent(&out, []byte(text), "", "  ") == nil {
		return out.String()
	}
	return text
}

// link links a value to the page of the object that it names, if the role may see it.
func (v *view) link(name string, c *pages.ConsoleCell) {
	to, ok := links[name]
	if ok && c.Text != "" && v.may(to[0]) {
		c.URL = v.url(to[0], url.Values{to[1]: {c.Text}})
	}
}

// unwrapped returns the value in an interface or pointer.
func unwrapped(v reflect.Value) reflect.Value {
	for (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && !v.IsNil() {
		v = v.Elem()
	}
	return v
}

// isTable reports whether v is a list of structs, which is shown as a table.
func isTable(v reflect.Value) bool {
	return v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct
}

// isGroup reports whether v is a struct that is shown as a group of facts.
func isGroup(v reflect.Value) bool {
	if v.Kind() != reflect.Struct {
		return false
	}
	_, text := v.Interface().(fmt.Stringer)
	_, moment := v.Interface().(time.Time)
	_, party := v.Interface().(admin.Party)
	return !text && !moment && !party
}
