package column

import (
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// AddressColumns are those of the table of resources, in the order in which ReadAddress reads them.
const AddressColumns = "uri, name, scopes, created_at, alias_of, dpop"

// Address is a row of that table: a resource, or an alias of one. An alias has name, scopes and the like
// of its resource for versions that know no aliases and take it for a resource.
type Address struct {
	URI, Name string
	Scopes    string // JSON
	CreatedAt time.Time
	AliasOf   string // "": a resource
	DPoP      string
}

// Addresses are the rows of a resource, that of itself first.
func Addresses(r storage.Resource) []Address {
	own := Address{URI: r.URI, Name: r.Name, Scopes: List(r.Scopes), CreatedAt: r.CreatedAt, DPoP: string(r.DPoP)}
	out := []Address{own}
	for _, alias := range r.Aliases {
		row := own
		row.URI, row.AliasOf = alias, r.URI
		out = append(out, row)
	}
	return out
}

// Values are what a row is made of.
func (a Address) Values() []any {
	return []any{a.URI, a.Name, a.Scopes, Millis(a.CreatedAt), Text(a.AliasOf), a.DPoP}
}

// ReadAddress reads a row.
func ReadAddress(row interface{ Scan(dest ...any) error }) (a Address, err error) {
	var created int64
	var aliasOf *string
	if err := row.Scan(&a.URI, &a.Name, &a.Scopes, &created, &aliasOf, &a.DPoP); err != nil {
		return a, err
	}
	a.CreatedAt, a.AliasOf = Time(created), OptText(aliasOf)
	return a, nil
}

// Resources are the resources of all rows, with their aliases, in the order of the rows.
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
			DPoP: storage.DPoP(row.DPoP),
		}
		if r.Scopes, err = ParseList[storage.ScopeText](row.Scopes); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}
