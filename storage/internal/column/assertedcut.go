package column

import (
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// A cut is no end while what was issued before it can still be presented. So it is noted, among what was
// used up, until each assertion of before has expired: of the cut table nothing stays so long.
const (
	cutAssertions = "assertions before a cut" // purpose
	// cutAssertionsFor is how long: as long as an assertion can be valid, by clocks that differ.
	cutAssertionsFor = storage.MaxTrustTTL + time.Minute

	// NoteCut notes a cut; later is the function for the later one of two times.
	NoteCut = "INSERT INTO spent (purpose, id, expires_at) VALUES ('" + cutAssertions + `', $1, $2)
ON CONFLICT (purpose, id) DO UPDATE SET expires_at = `
	NotedLater = "(spent.expires_at, excluded.expires_at)"

	// WasCut is the condition that one of the cuts $3 is not earlier than the assertion, as of CutsOf.
	WasCut = "EXISTS (SELECT 1 FROM spent WHERE purpose = '" + cutAssertions + "' AND expires_at >= $4 AND id IN "
)

// NotedCut are the values of NoteCut.
func NotedCut(sel storage.Selection, at time.Time) []any {
	return []any{cutKey(sel), Millis(at.Add(cutAssertionsFor))}
}

// CutsOf are the values of WasCut: the cuts that would have ended a grant, as a JSON list, and when they
// are forgotten if they are as late as its assertion.
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

// cutKey names a selection; of all grants, every field is empty.
func cutKey(sel storage.Selection) string {
	return List([]string{sel.UserID, sel.ClientID, sel.Resource, sel.Trust})
}
