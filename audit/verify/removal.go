package verify

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/mod/sumdb/note"
)

// RemovedEvent announces the removal of old entries. Its field "below" is the index of the first
// entry that stays. Its field "statement" says the same, signed by the key of the log. No entry may
// be missing without such an event.
const RemovedEvent = "audit.removed"

// RemovalText returns the text of the signed note about a removal. It never parses as a checkpoint.
func RemovalText(origin string, below int64) string {
	return fmt.Sprintf("%s\nentries below %d are removed by their age\n", origin, below)
}

// removal returns the index below which an entry permits others to be missing.
func removal(e Entry, index int64, key string) (below int64, err error) {
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return 0, fmt.Errorf("verify: the key of the log cannot be read: %w", err)
	}
	below, err = strconv.ParseInt(e.Fields["below"], 10, 64)
	if err != nil || below < 0 || below > index {
		return 0, errors.New("it says that entries are removed, and not which of those before it")
	}
	n, err := note.Open([]byte(e.Fields["statement"]), note.VerifierList(verifier))
	if err != nil || n.Text != RemovalText(verifier.Name(), below) {
		return 0, errors.New("it says that entries are removed, and the key of the log has not signed that")
	}
	return below, nil
}
