package column

import (
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// After a cut, an assertion issued before it must stay refused for as long as it is valid. So the
// cut is recorded among the used-up identifiers. The rows in the tables of cuts do not stay that
// long.
const (
	cutAssertions = "assertions before a cut" // purpose
	// cutAssertionsFor is the longest validity of an assertion, with an allowance for clock
	// differences.
	cutAssertionsFor = storage.MaxTrustTTL + time.Minute

	// NoteCut records a cut. The caller appends the database's function for the later of two times
	// and NotedLater.
	NoteCut = "INSERT INTO spent (purpose, id, expires_at) VALUES ('" + cutAssertions + `', $1, $2)
ON CONFLICT (purpose, id) DO UPDATE SET expires_at = `
	NotedLater = "(spent.expires_at, excluded.expires_at)"

	// WasCut is the condition that one of the cuts $3 is not earlier than the assertion, see
	// CutsOf.
	WasCut = "EXISTS (SELECT 1 FROM spent WHERE purpose = '" + cutAssertions + "' AND expires_at >= $4 AND id IN "
)

// NotedCut returns the values of NoteCut.
func NotedCut(sel storage.Selection, at time.Time) []any {
	return []any{cutKey(sel), Millis(at.Add(cutAssertionsFor))}
}

// CutsOf returns the values of WasCut. The first is a JSON list of the cuts that would have ended a
// grant. The second is the expiry of a record whose cut is as late as the assertion.
func CutsOf(g storage.Grant, issuedAt time.Time) []any {
	keys := []string{cutKey(storage.Selection{Trust: g.TrustID})}
	for _, user := range []string{"", g.UserID} {
		for _, client := range []string{"", g.ClientID} {
			for _, resource := range []string{"", g.Resource} {
				keys = append(keys, cutKey(storage.Selection{UserID: user, ClientID: client, Resource: resource}))
			}
		}
	}
	return []any{List(keys), Millis(issuedAt.Add(cutAssertionsFor))}
}

// cutKey returns the key of a selection. For all grants, every field is empty.
func cutKey(sel storage.Selection) string {
	return List([]string{sel.UserID, sel.ClientID, sel.Resource, sel.Trust})
}
