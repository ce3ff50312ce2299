package column

import "github.com/mcp-authd/mcp-authd/internal/storage"

// WayColumns are the columns of an authentication method.
const WayColumns = "id, user_id, kind, name, rp_id, credential_id, data, counter, created_at, last_used_at"

// WayRow reads WayColumns.
type WayRow struct {
	w       storage.Way
	kind    string
	created int64
	used    *int64
}

func (r *WayRow) Dest() []any {
	return []any{
		&r.w.ID, &r.w.UserID, &r.kind, &r.w.Name, &r.w.RPID, &r.w.CredentialID, &r.w.Data, &r.w.Counter, &r.created,
		&r.used,
	}
}

func (r *WayRow) Way() storage.Way {
	w := r.w
	w.Kind, w.CreatedAt, w.LastUsedAt = storage.WayKind(r.kind), Time(r.created), OptTime(r.used)
	return w
}

// WayValues returns the values of WayColumns.
func WayValues(w storage.Way) []any {
	return []any{
		w.ID, w.UserID, string(w.Kind), w.Name, w.RPID, Bytes(w.CredentialID), w.Data, w.Counter, Millis(w.CreatedAt),
		OptMillis(w.LastUsedAt),
	}
}

// FactorsDest returns the scan destinations of storage.Factors, in field order.
func FactorsDest(f *storage.Factors) []any {
	return []any{&f.Password, &f.Passkeys, &f.Apps, &f.RecoveryCodes, &f.Identities, &f.AdminEnrolled}
}
