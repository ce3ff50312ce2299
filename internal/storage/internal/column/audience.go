package column

import (
	"encoding/json"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// AudienceColumns are the columns of an audience.
const AudienceColumns = "issuer, policy, created_at"

// AudienceValues returns the values of AudienceColumns.
func AudienceValues(a storage.Audience) ([]any, error) {
	policy, err := json.Marshal(a)
	return []any{a.Issuer, string(policy), Millis(a.CreatedAt)}, err
}

// ReadAudience reads AudienceColumns.
func ReadAudience(row interface{ Scan(dest ...any) error }) (a storage.Audience, err error) {
	var issuer, policy string
	var created int64
	if err := row.Scan(&issuer, &policy, &created); err != nil {
		return a, err
	}
	if err := json.Unmarshal([]byte(policy), &a); err != nil {
		return a, fmt.Errorf("audience %q: %w", issuer, err)
	}
	a.Issuer, a.CreatedAt = issuer, Time(created)
	return a, nil
}
