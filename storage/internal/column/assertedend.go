package column

import (
	"slices"

	"github.com/mcp-authd/mcp-authd/storage"
)

// AssertedEndColumns are what AssertedEndValues has values for.
const AssertedEndColumns = "issuer, subject, at, expires_at"

// AssertedEndConflict keeps the later of two ends of one subject. Latest is the function of the
// database that returns the larger of two numbers.
func AssertedEndConflict(latest string) string {
	return " ON CONFLICT (issuer, subject) DO UPDATE SET at = " + latest +
		"(e.at, excluded.at), expires_at = " + latest + "(e.expires_at, excluded.expires_at)"
}

// AssertedEndValues are the rows of an end, in an order that is the same for each caller.
func AssertedEndValues(e storage.AssertedEnd) (out [][]any) {
	for _, s := range slices.Compact(slices.Sorted(slices.Values(e.Subjects))) {
		out = append(out, []any{e.Issuer, s, Millis(e.At), Millis(e.ForgetAt)})
	}
	return out
}
