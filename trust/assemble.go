package trust

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcp-authd/mcp-authd/storage"
)

// unusable is an entry that is not used, and why.
type unusable struct {
	id  string
	err error
}

var (
	errOurs    = errors.New("issuer: is this server, which redeems no assertion of its own")
	errTwice   = errors.New("id: another entry has it")
	errTwoKeys = errors.New("jwks_url: an earlier entry has other keys for this issuer; one issuer has one set of keys")
)

// assemble makes the entries of the configuration and then of the store ready, in the order in which they are
// tried. Marks of the store disable those of the configuration. An id is one entry's alone, and the entries
// of one issuer have the same keys: who else holds a key could speak for the people of the first (AS-230). We
// are no issuer of ours: an assertion for another server, redeemed here, would be a sign-in without a person
// (AS-244).
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

// CheckAll reports what is wrong with the entries of a configuration taken together, and which it is. us is
// our issuer.
func CheckAll(us string, entries []storage.TrustEntry) error {
	_, broken := assemble(us, entries, nil)
	var errs []error
	for _, b := range broken {
		errs = append(errs, fmt.Errorf("%q: %w", b.id, b.err))
	}
	return errors.Join(errs...)
}

// Fits reports what is wrong with one more entry beside those that there are. us is our issuer.
func Fits(us string, there []storage.TrustEntry, e storage.TrustEntry) error {
	_, before := assemble(us, there, nil)
	_, after := assemble(us, append(slices.Clone(there), e), nil)
	if len(after) > len(before) {
		return after[len(after)-1].err
	}
	return nil
}
