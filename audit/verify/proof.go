package verify

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Proof is entries of a log with what shows that they are in it: what "audit prove --json" prints.
type Proof struct {
	Log        string   `json:"log"`        // the origin of the log
	Checkpoint string   `json:"checkpoint"` // signed; see OpenCheckpoint
	Entries    []Proved `json:"entries"`    // by index
	// Removed says that the approval of the grant was in the log, and has gone with other old entries. It is
	// what the server says, and not proved.
	Removed bool `json:"removed,omitempty"`
	// Unapproved says that the log has no approval of the grant by its person: an operator, a person for a program
	// of theirs, or an assertion gave it. It is what the server says, and not proved. A reader must show it.
	Unapproved bool `json:"unapproved,omitempty"`
}

// Proved is one entry with its inclusion proof.
type Proved struct {
	Index int64  `json:"index"`
	Leaf  string `json:"leaf"`  // in canonical JSON; see Entry.Leaf
	Proof []Hash `json:"proof"` // RFC 9162 §2.1.3: the hashes beside the way to the root, from below
}

// Open checks the checkpoint by the key of the log, which the caller has from elsewhere than from
// the proof, each entry by the checkpoint, and that the entries belong together: those before the last one are the
// approval of its grant, its token and the clearance of its call. It returns what the entries say. A proof of a
// grant without an approval in it passes only if it says so itself (Removed, Unapproved).
func (p Proof) Open(key string) ([]Entry, error) {
	c, err := OpenCheckpoint([]byte(p.Checkpoint), key)
	if err != nil {
		return nil, err
	}
	out := make([]Entry, 0, len(p.Entries))
	last := int64(-1)
	for _, e := range p.Entries {
		entry, err := ParseEntry([]byte(e.Leaf))
		if err != nil {
			return nil, err
		}
		if e.Index <= last || e.Index >= c.Size {
			return nil, fmt.Errorf("verify: entry %d is out of order, or not below %d", e.Index, c.Size)
		}
		last = e.Index
		if err := tlog.CheckRecord(e.Proof, c.Size, c.Root, e.Index, tlog.RecordHash([]byte(e.Leaf))); err != nil {
			return nil, fmt.Errorf("verify: entry %d is not in the log of the checkpoint", e.Index)
		}
		out = append(out, entry)
	}
	if len(out) == 0 {
		return nil, errors.New("verify: the proof has no entries")
	}
	return out, p.joined(out)
}

// Events of entries that a proof joins.
const (
	consentApproved = "consent.approved"
	clearanceGiven  = "clearance.given"
)

// joins names the events that a proof joins to its last entry, each with the field that has to be that of the last
// entry as well, besides grant and user.
var joins = map[string]string{
	consentApproved: "",
	"token.issued":  "jti", "token.refreshed": "jti", "token.replayed": "jti", "token.recovered": "jti",
	clearanceGiven: "clearance",
}

// joined returns an error unless all entries are about the last one.
func (p Proof) joined(entries []Entry) error {
	last := entries[len(entries)-1]
	there := map[string]bool{last.Event: true}
	for i, e := range entries[:len(entries)-1] {
		own, joins := joins[e.Event]
		if !joins {
			return fmt.Errorf("verify: entry %d, %s, shows nothing of entry %d", p.Entries[i].Index, e.Event, p.last())
		}
		there[e.Event] = true
		if e.Fields["grant"] == "" {
			return fmt.Errorf("verify: entry %d has no grant", p.Entries[i].Index)
		}
		for _, name := range []string{"grant", "user", own} {
			// Entries of versions before may lack a user or a token: that shows nothing, and contradicts nothing.
			has, want := e.Fields[name], last.Fields[name]
			lacks := name != "grant" && name != "clearance" && (has == "" || want == "")
			if name != "" && has != want && !lacks {
				return fmt.Errorf("verify: entry %d is of another %s than entry %d", p.Entries[i].Index, name, p.last())
			}
		}
	}
	if last.Fields["clearance"] != "" && last.Event != clearanceGiven && !there[clearanceGiven] && !p.Removed {
		return fmt.Errorf("verify: entry %d says that a person cleared it, and the proof has no clearance", p.last())
	}
	if last.Fields["grant"] != "" && !there[consentApproved] && !p.Removed && !p.Unapproved {
		return fmt.Errorf("verify: the proof has no approval of the grant of entry %d", p.last())
	}
	return nil
}

// last is the index of the last entry.
func (p Proof) last() int64 { return p.Entries[len(p.Entries)-1].Index }
