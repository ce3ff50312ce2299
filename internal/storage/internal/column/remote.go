package column

import "github.com/mcp-authd/mcp-authd/internal/storage"

// RemoteColumns are the stored columns of a request for sign-in from another device; RemoteRead are
// the columns that are read.
const (
	RemoteColumns = "secret_hash, code_hash, agent, address, created_at, expires_at"
	RemoteRead    = RemoteColumns + ", decided_at, session_hash, collected_at"
)

// RemoteRow reads RemoteRead.
type RemoteRow struct {
	r                      storage.RemoteSignIn
	secret, code, approver []byte
	created, expires       int64
	decided, collected     *int64
}

func (r *RemoteRow) Dest() []any {
	return []any{
		&r.secret, &r.code, &r.r.Agent, &r.r.Address, &r.created, &r.expires, &r.decided, &r.approver, &r.collected,
	}
}

func (r *RemoteRow) RemoteSignIn() (out storage.RemoteSignIn, err error) {
	out = r.r
	if out.Secret, err = Hash(r.secret); err != nil {
		return out, err
	}
	if out.Code, err = Hash(r.code); err != nil {
		return out, err
	}
	if r.approver != nil {
		approver, err := Hash(r.approver)
		if err != nil {
			return out, err
		}
		out.Approver = &approver
	}
	out.CreatedAt, out.ExpiresAt = Time(r.created), Time(r.expires)
	out.DecidedAt, out.CollectedAt = OptTime(r.decided), OptTime(r.collected)
	return out, nil
}

// RemoteValues returns the values of RemoteColumns.
func RemoteValues(r storage.RemoteSignIn) []any {
	return []any{r.Secret[:], r.Code[:], r.Agent, r.Address, Millis(r.CreatedAt), Millis(r.ExpiresAt)}
}

// ApproverLives finds the session $1 of an enabled user at the time $2.
const ApproverLives = `SELECT 1 FROM sessions s JOIN users u ON u.id = s.user_id
WHERE s.hash = $1 AND s.expires_at > $2 AND NOT u.disabled AND NOT ` + IsSignedOut
