// Package identifier tells ids from names. Each id begins with the prefix of its kind, and no name
// does, so that a field that takes either never has to guess.
package identifier

import (
	"slices"
	"strings"
)

// The prefixes of the ids that other packages make and look for.
const (
	User   = "usr_"
	Client = "mcp_"
	Key    = "key_" // a client that is a person's key for a program
	Grant  = "grt_"
	Pause  = "pau_"
)

// Prefixes returns the prefixes of all kinds of ids, links and tickets.
func Prefixes() []string {
	return []string{
		User, Client, Key, Grant,
		Pause, "2nd_", "acc_", "ads_", "app_", "att_", "awr_", "chg_", "clr_", "cut_", "evt_", "mcpab_", "mcpac_",
		"mcpdc_", "mcpks_", "mcplk_", "mcpra_", "mcprt_", "nod_", "ntc_", "prp_", "rep_", "ses_",
		"set_", "ups_", "way_",
	}
}

// Is reports whether a text has the form of an id, of whatever kind. Case does not count, because names are
// compared without regard to it.
func Is(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(Prefixes(), func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}

// IsClient reports whether a text has the form of a client id, also of the kinds that have no prefix of
// letters: the URL of a metadata document, and a workload.
func IsClient(text string) bool {
	lower := strings.ToLower(text)
	return Is(text) || strings.Contains(lower, "://") || strings.HasPrefix(lower, "workload:")
}

// Words returns words that cannot be names, because they have a meaning in paths, or name an actor without an
// account in the audit log.
func Words() []string { return []string{".", "..", "operator", "system"} }

// Reserved reports whether a text can be no name: one that Is an id, or one of Words.
func Reserved(name string) bool { return Is(name) || slices.Contains(Words(), strings.ToLower(name)) }

// maxName bounds the name of an account or of a group, in bytes.
const maxName = 64

// ValidName reports whether a new account can have a name: WellFormed, and not Reserved.
func ValidName(name string) bool { return WellFormed(name) && !Reserved(name) }

// WellFormed reports whether a name has 1 to 64 letters, digits or . _ - @ +. Accounts of earlier versions
// can have a name that is Reserved.
func WellFormed(name string) bool {
	return name != "" && len(name) <= maxName && strings.IndexFunc(name, notInNames) < 0
}

// GroupFault says what is wrong with a name for which ValidGroup is false.
const GroupFault = `%q is not a valid group name: use up to 64 lowercase letters, digits, ".", "_" and "-", starting ` +
	"with a letter or digit"

// ValidGroup reports whether a group of accounts can have a name: 1 to 64 lowercase letters, digits or . _ -, of which
// the first is a letter or a digit.
func ValidGroup(name string) bool {
	inside := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("-._", r)
	}
	return name != "" && len(name) <= maxName && !strings.ContainsRune("-._", rune(name[0])) &&
		strings.IndexFunc(name, func(r rune) bool { return !inside(r) }) < 0
}

func notInNames(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-@+", r))
}

// Name makes the name of an account from what somebody else calls the person, with the place they come
// from: "ada@github".
func Name(label, place string) string {
	clean := Clean(label)
	if clean == "" {
		clean = "user"
	}
	if Is(clean) {
		clean = "user-" + clean
	}
	suffix := "@" + place
	return clean[:min(len(clean), max(1, maxName-len(suffix)))] + suffix[:min(len(suffix), maxName-1)]
}

// Clean removes the characters that names do not have. A space becomes a dot.
func Clean(label string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '.'
		case notInNames(r):
			return -1
		}
		return r
	}, label)
}
