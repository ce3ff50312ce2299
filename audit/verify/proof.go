package verify

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Proof contains entries and the proof that they are in a log, as printed by "audit prove --json".
type Proof struct {
	Log        string   `json:"log"`        // origin of the log
	Checkpoint string   `json:"checkpoint"` // signed; see OpenCheckpoint
	Entries    []Proved `json:"entries"`    // sorted by index
	// Removed reports that the approval of the grant was removed with old entries. The server
	// claims this without proof.
	Removed bool `json:"removed,omitempty"`
	// Unapproved reports that the log contains no approval of the grant by its user: an operator, a
	// user for their own program, or an assertion created it. The server claims this without proof.
	// A reader must show it.
	Unapproved bool `json:"unapproved,omitempty"`
}

// Proved is an entry with its inclusion proof.
type Proved struct {
	Index int64  `json:"index"`
	Leaf  string `json:"leaf"`  // canonical JSON; see Entry.Leaf
	Proof []Hash `json:"proof"` // RFC 9162 §2.1.3: sibling hashes from the leaf to the root
}

// Open verifies the proof with the key of the log, which the caller must know from elsewhere, and
// returns the entries. Each entry before the last must be the approval of the last one's grant, its
// token, or the clearance of its call. Without an approval, the proof must declare Removed or
// Unapproved.
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

// The events that Open requires for some last entries.
const (
	consentApproved = "consent.approved"
	clearanceGiven  = "clearance.given"
)

// joins maps each event that may precede the last entry to the field that both must share, besides
// grant and user.
var joins = map[string]string{
	consentApproved: "",
	"token.issued":  "jti", "token.refreshed": "jti", "token.replayed": "jti", "token.recovered": "jti",
	clearanceGiven: "clearance",
}

// joined returns an error unless all entries belong to the last one.
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
			// Entries by older versions may lack a user or a token.
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

func (p Proof) last() int64 { return p.Entries[len(p.Entries)-1].Index }
