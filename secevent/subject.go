package secevent

const (
	maxNested  = 2 // a list of aliases in a part of a complex subject
	maxAliases = 8
)

// Target is whom an event is about: a person at an issuer, or one of their sessions there, or one
// session of a person who is not named. Every field that is not empty is meant.
type Target struct {
	Issuer    string // "": the issuer of the token
	Subject   string // sub
	SessionID string // sid
	opaque    bool   // the subject is an id of which is not said whether it names a session
}

// targetsOf reads a subject (RFC 9493 §3, SSF 1.0 §3). A person is known here by issuer and subject
// only: an address, a phone number or an account URI can pass to another person, so they name none.
func targetsOf(subject map[string]any, depth int) []Target {
	format := text(subject, "format")
	if format == "" {
		format = text(subject, "subject_type") // of RISC before RFC 9493, as Google sends it
	}
	switch format {
	case "iss_sub", "iss-sub":
		return known(Target{Issuer: text(subject, "iss"), Subject: text(subject, "sub")})
	case "opaque":
		return known(Target{Subject: text(subject, "id"), opaque: true})
	case "aliases": // RFC 9493 §3.2.8
		return aliases(subject, depth)
	case "complex", "": // SSF 1.0 §3.2; before, members without a format
		return complexSubject(subject, depth)
	}
	return nil
}

// known returns a target that names something.
func known(t Target) []Target {
	if t.Subject == "" || len(t.Subject) > maxText || !t.opaque && t.Issuer == "" || len(t.Issuer) > maxText {
		return nil
	}
	return []Target{t}
}

func aliases(subject map[string]any, depth int) (out []Target) {
	all, _ := subject["identifiers"].([]any)
	if depth >= maxNested || len(all) > maxAliases {
		return nil
	}
	for _, one := range all {
		if s, ok := one.(map[string]any); ok && text(s, "format") != "aliases" {
			out = append(out, targetsOf(s, depth+1)...)
		}
	}
	return out
}

// complexSubject reads the parts user and session. Devices, tenants and groups are not known here;
// beside a user they only say that less was meant.
func complexSubject(subject map[string]any, depth int) []Target {
	if depth >= maxNested {
		return nil
	}
	user, _ := subject["user"].(map[string]any)
	session, _ := subject["session"].(map[string]any)
	sid := ""
	if text(session, "format") == "opaque" {
		sid = text(session, "id")
	}
	if len(sid) > maxText {
		sid = ""
	}
	var people []Target
	if user != nil {
		people = targetsOf(user, depth+1)
	}
	if len(people) == 0 && sid != "" { // the issuer's name of its session says enough
		return []Target{{SessionID: sid}}
	}
	for i := range people {
		people[i].SessionID, people[i].opaque = sid, false
	}
	return people
}

// orSessions adds the sessions that opaque subjects may be (CAEP 1.0 §3.1).
func orSessions(targets []Target) (out []Target) {
	for _, t := range targets {
		if t.opaque {
			out = append(out, Target{SessionID: t.Subject})
			t.opaque = false
		}
		out = append(out, t)
	}
	return out
}

// wholeAccounts leaves sessions out: what happened to an account ends all of them.
func wholeAccounts(targets []Target) (out []Target) {
	for _, t := range targets {
		if t.SessionID, t.opaque = "", false; t.Subject != "" {
			out = append(out, t)
		}
	}
	return out
}
