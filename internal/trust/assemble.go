package trust

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// unusable is an entry that cannot be used, with the reason.
type unusable struct {
	id  string
	err error
}

var (
	errOurs    = errors.New("issuer: must be another server: this one redeems no assertions that it issued")
	errTwice   = errors.New("id: another entry has it")
	errTwoKeys = errors.New("jwks_url: an earlier entry has other keys for this issuer; one issuer has one set of keys")
)

// assemble compiles the entries of the configuration and then of the store, in the order of their
// use. Marks in the store disable entries of the configuration.
//
// An ID belongs to one entry. All entries of one issuer must have the same keys: the owner of other
// keys could make statements about the users of the first (AS-230). This server is not a trusted
// issuer of itself: redeeming an assertion that it issued for another server would be a sign-in
// without a user (AS-244).
func assemble(us string, configured, stored []storage.TrustEntry) (out []*entry, broken []unusable) {
	marks := map[string]storage.TrustEntry{}
	for _, e := range stored {
		if e.Mark() {
			marks[e.ID] = e
		}
	}
	ids, keys := map[string]bool{}, map[string]source{}
	add := func(e storage.TrustEntry) {
		c, err := compile(e)
		if err == nil && c.Issuer == us {
			err = errOurs
		}
		if err == nil && ids[e.ID] {
			err = errTwice
		}
		if err == nil {
			if first, ok := keys[c.Issuer]; ok && first != c.keys {
				err = errTwoKeys
			}
		}
		if err != nil {
			broken = append(broken, unusable{e.ID, err})
			return
		}
		ids[c.ID], keys[c.Issuer] = true, c.keys
		out = append(out, c)
	}
	for _, e := range configured {
		e.Config = true
		if mark, ok := marks[e.ID]; ok {
			e.DisabledAt = mark.DisabledAt
		}
		add(e)
	}
	for _, e := range stored {
		if !e.Mark() {
			add(e)
		}
	}
	return out, broken
}

// CheckAll returns an error that names each invalid entry of a configuration, including conflicts
// between entries. us is this server's issuer identifier.
func CheckAll(us string, entries []storage.TrustEntry) error {
	_, broken := assemble(us, entries, nil)
	var errs []error
	for _, b := range broken {
		errs = append(errs, fmt.Errorf("%q: %w", b.id, b.err))
	}
	return errors.Join(errs...)
}

// Fits returns an error if e cannot be added to the existing entries. us is this server's issuer
// identifier.
func Fits(us string, there []storage.TrustEntry, e storage.TrustEntry) error {
	_, before := assemble(us, there, nil)
	_, after := assemble(us, append(slices.Clone(there), e), nil)
	if len(after) > len(before) {
		return after[len(after)-1].err
	}
	return nil
}
