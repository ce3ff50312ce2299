package column

import (
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// AssertedEndColumns are the columns of AssertedEndValues.
const AssertedEndColumns = "issuer, subject, at, expires_at"

// AssertedEndConflict returns the clause that keeps the later of two ends of one subject. latest is
// the database's function for the larger of two numbers.
func AssertedEndConflict(latest string) string {
	return " ON CONFLICT (issuer, subject) DO UPDATE SET at = " + latest +
		"(e.at, excluded.at), expires_at = " + latest + "(e.expires_at, excluded.expires_at)"
}

// AssertedEndValues returns the rows of an end, in the same order for each caller.
func AssertedEndValues(e storage.AssertedEnd) (out [][]any) {
	for _, s := range slices.Compact(slices.Sorted(slices.Values(e.Subjects))) {
		out = append(out, []any{e.Issuer, s, Millis(e.At), Millis(e.ForgetAt)})
	}
	return out
}
