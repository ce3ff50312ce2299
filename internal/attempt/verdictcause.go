package attempt

// judgeCause returns the verdict for a cause that decides alone, regardless of the step and the
// error code.
func judgeCause(s Step) (Verdict, bool) {
	switch s.Answer.Cause {
	case CauseStorage:
		return ServerFailed.verdict("The server could not answer: " + told(s)), true
	case CauseHost:
		return HostUnknown.verdict("The request was refused: " + s.reason()), true
	case CauseForm:
		return FormLost.verdict("The browser sent no cookie that belongs to the page, or sent it too late. " +
			"Nothing else was looked at."), true
	case CauseOrigin:
		return FormRefused.verdict("By its headers the form was sent from another site, so nothing in it was " +
			"looked at."), true
	case CauseScheme:
		return RedirectSchemeRefused.verdict("The registration was refused: " + told(s)), true
	case CauseInClear:
		return RedirectInClear.verdict("The registration was refused: " + told(s)), true
	case CauseClientUnknown, CauseClientDeleted:
		return ClientUnknown.verdict("The client uses a client id that this server does not know (any more)."), true
	case CauseDocument:
		return DocumentUnusable.verdict(s.Answer.Description), true
	case CauseDocumentAway:
		return DocumentUnusable.verdict("The client's metadata document could not be fetched: " + s.reason()), true
	case CauseProvider:
		return ProviderRefused.verdict("The sign-in at the provider was not accepted: " + s.reason()), true
	case CauseRule:
		return PersonNotPermitted.verdict("The person may not sign in: " + s.reason()), true
	case CauseNotPermitted:
		text := "The account of the person may have nothing of what the client asked for"
		if s.Answer.Reason != "" && s.Answer.Reason != s.Answer.Description {
			return PersonNotPermitted.verdict(text + ": " + s.reason()), true
		}
		return PersonNotPermitted.verdict(text + "."), true
	case CausePaused:
		return AccessPaused.verdict("The person has paused this application."), true
	case CauseHeld:
		return ApplicationHeld.verdict(told(s)), true
	}
	return Verdict{}, false
}
