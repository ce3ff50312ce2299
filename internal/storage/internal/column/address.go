package column

import (
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// AddressColumns are the columns of the resources table, in the order of ReadAddress.
const AddressColumns = "uri, name, scopes, created_at, alias_of, dpop, upstream, tool_rules"

// Address is a row of the resources table: a resource or an alias. An alias repeats its resource's
// name, scopes and other columns for versions that know no aliases and treat it as a resource.
type Address struct {
	URI, Name string
	Scopes    string // JSON
	CreatedAt time.Time
	AliasOf   string // "": a resource
	DPoP      string
	Upstream  string
	ToolRules string // JSON; "": none
}

// Addresses returns the rows of a resource. Its own row comes first.
func Addresses(r storage.Resource) []Address {
	own := Address{
		URI: r.URI, Name: r.Name, Scopes: List(r.Scopes), CreatedAt: r.CreatedAt, DPoP: string(r.DPoP),
		Upstream: r.Upstream, ToolRules: ToolRules(r),
	}
	out := []Address{own}
	for _, alias := range r.Aliases {
		row := own
		row.URI, row.AliasOf, row.Upstream, row.ToolRules = alias, r.URI, "", ""
		out = append(out, row)
	}
	return out
}

// ToolRules returns the column tool_rules of a resource.
func ToolRules(r storage.Resource) string {
	if len(r.ToolRules) == 0 {
		return ""
	}
	return List(r.ToolRules)
}

// Values returns the values of a row.
func (a Address) Values() []any {
	return []any{a.URI, a.Name, a.Scopes, Millis(a.CreatedAt), Text(a.AliasOf), a.DPoP, a.Upstream, a.ToolRules}
}

// ReadAddress reads a row.
func ReadAddress(row interface{ Scan(dest ...any) error }) (a Address, err error) {
	var created int64
	var aliasOf *string
	err = row.Scan(&a.URI, &a.Name, &a.Scopes, &created, &aliasOf, &a.DPoP, &a.Upstream, &a.ToolRules)
	if err != nil {
		return a, err
	}
	a.CreatedAt, a.AliasOf = Time(created), OptText(aliasOf)
	return a, nil
}

// Resources returns the resources of all rows, with their aliases, in row order.
func Resources(rows []Address) (out []storage.Resource, err error) {
	aliases := map[string][]string{}
	for _, row := range rows {
		if row.AliasOf != "" {
			aliases[row.AliasOf] = append(aliases[row.AliasOf], row.URI)
		}
	}
	for _, row := range rows {
		if row.AliasOf != "" {
			continue
		}
		r := storage.Resource{
			URI: row.URI, Name: row.Name, CreatedAt: row.CreatedAt, Aliases: aliases[row.URI],
			DPoP: storage.DPoP(row.DPoP), Upstream: row.Upstream,
		}
		if r.Scopes, err = ParseList[storage.ScopeText](row.Scopes); err != nil {
			return nil, err
		}
		if row.ToolRules != "" {
			if r.ToolRules, err = ParseList[storage.ToolRule](row.ToolRules); err != nil {
				return nil, err
			}
		}
		out = append(out, r)
	}
	return out, nil
}
