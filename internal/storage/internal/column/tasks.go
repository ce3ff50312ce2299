package column

import "github.com/mcp-authd/mcp-authd/internal/storage"

// TaskColumns are the columns that are read of a task.
const TaskColumns = "id, owner, person, name, created_at, expires_at, version, sealed"

// TaskRow reads TaskColumns.
type TaskRow struct {
	t                 storage.Task
	id, owner, person []byte
	created, expires  int64
}

func (r *TaskRow) Dest() []any {
	return []any{&r.id, &r.owner, &r.person, &r.t.Name, &r.created, &r.expires, &r.t.Version, &r.t.Sealed}
}

func (r *TaskRow) Task() (out storage.Task, err error) {
	out = r.t
	for to, from := range map[*storage.Hash][]byte{&out.ID: r.id, &out.Owner: r.owner, &out.Person: r.person} {
		if *to, err = Hash(from); err != nil {
			return out, err
		}
	}
	out.CreatedAt, out.ExpiresAt = Time(r.created), Time(r.expires)
	return out, nil
}

// ReadTask reads TaskColumns of a row.
func ReadTask(row interface{ Scan(dest ...any) error }) (storage.Task, error) {
	var r TaskRow
	if err := row.Scan(r.Dest()...); err != nil {
		return storage.Task{}, err
	}
	return r.Task()
}

// TaskValues returns the values of TaskColumns.
func TaskValues(t storage.Task) []any {
	return []any{
		t.ID[:], t.Owner[:], t.Person[:], t.Name, Millis(t.CreatedAt), Millis(t.ExpiresAt), t.Version, t.Sealed,
	}
}
