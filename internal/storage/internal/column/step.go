package column

import (
	"strconv"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// StepColumns are the columns of a StepRow.
const StepColumns = "seq, at, kept_until, keys, body"

// SurplusSteps selects the steps beyond storage.MaxSteps.
var SurplusSteps = "SELECT seq FROM attempt_steps WHERE seq <= (SELECT max(seq) FROM attempt_steps) - " +
	strconv.Itoa(storage.MaxSteps)

// StepRow is a row of attempt_steps.
type StepRow struct {
	seq, at, keptUntil int64
	keys, body         string
}

func (r *StepRow) Dest() []any { return []any{&r.seq, &r.at, &r.keptUntil, &r.keys, &r.body} }

func (r *StepRow) Step() (storage.AttemptStep, error) {
	keys, err := ParseList[string](r.keys)
	return storage.AttemptStep{
		Seq: r.seq, At: Time(r.at), Keys: keys, Body: []byte(r.body), KeptUntil: Time(r.keptUntil),
	}, err
}
