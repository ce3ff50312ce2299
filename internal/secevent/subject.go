package secevent

const (
	maxNested  = 2 // a list of aliases inside a complex subject
	maxAliases = 8
)

// Target is the subject of an event: a user of an issuer, one of the user's sessions, or a session
// whose user is not named. A target must match all fields that are not empty.
type Target struct {
	Issuer    string // "": the issuer of the token
	Subject   string // sub
	SessionID string // sid
	opaque    bool   // it is unspecified whether the ID is a user or a session
}

// targetsOf reads a subject (RFC 9493 §3, SSF 1.0 §3). Users are identified only by issuer and
// subject. An address, a phone number or an account URI can pass to someone else, so those formats
// give no target.
func targetsOf(subject map[string]any, depth int) []Target {
	format := text(subject, "format")
	if format == "" {
		format = text(subject, "subject_type") // from RISC before RFC 9493, as Google sends it
	}
	switch format {
	case "iss_sub", "iss-sub":
		return known(Target{Issuer: text(subject, "iss"), Subject: text(subject, "sub")})
	case "opaque":
		return known(Target{Subject: text(subject, "id"), opaque: true})
	case "aliases": // RFC 9493 §3.2.8
		return aliases(subject, depth)
	case "complex", "": // SSF 1.0 §3.2; earlier versions had members without a format
		return complexSubject(subject, depth)
	}
	return nil
}

// known returns the target if it identifies a user or a session.
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

// complexSubject reads the members user and session. Devices, tenants and groups are not supported;
// beside a user they only restrict the subject.
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
	if len(people) == 0 && sid != "" { // the issuer's session ID is sufficient
		return []Target{{SessionID: sid}}
	}
	for i := range people {
		people[i].SessionID, people[i].opaque = sid, false
	}
	return people
}

// orSessions adds session targets for opaque subjects, which may identify sessions (CAEP 1.0 §3.1).
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

// wholeAccounts removes the sessions from targets, because an event about an account ends all of
// its sessions.
func wholeAccounts(targets []Target) (out []Target) {
	for _, t := range targets {
		if t.SessionID, t.opaque = "", false; t.Subject != "" {
			out = append(out, t)
		}
	}
	return out
}
