package attempt

// decisive are the verdicts of the causes that decide alone, whatever the step and the protocol's code.
var decisive = map[Cause]func(Step) Verdict{
	CauseStorage: func(s Step) Verdict { return ServerFailed.verdict("The server could not answer: " + told(s)) },
	CauseHost:    func(s Step) Verdict { return HostUnknown.verdict("The request was refused: " + s.reason()) },
	CauseForm: func(s Step) Verdict {
		return FormLost.verdict("The browser sent no cookie that belongs to the page, or sent it too late. " +
			"Nothing else was looked at.")
	},
	CauseOrigin: func(Step) Verdict {
		return FormRefused.verdict("By its headers the form was sent from another site, so nothing in it was looked at.")
	},
	CauseScheme: func(s Step) Verdict {
		return RedirectSchemeRefused.verdict("The registration was refused: " + told(s))
	},
	CauseInClear: func(s Step) Verdict {
		return RedirectInClear.verdict("The registration was refused: " + told(s))
	},
	CauseClientUnknown: clientUnknown,
	CauseClientDeleted: clientUnknown,
	CauseDocument:      func(s Step) Verdict { return DocumentUnusable.verdict(s.Answer.Description) },
	CauseDocumentAway: func(s Step) Verdict {
		return DocumentUnusable.verdict("The client's metadata document could not be fetched: " + s.reason())
	},
	CauseProvider: func(s Step) Verdict {
		return ProviderRefused.verdict("The sign-in at the provider was not accepted: " + s.reason())
	},
	CauseRule: func(s Step) Verdict {
		return PersonNotPermitted.verdict("The person may not sign in: " + s.reason())
	},
	CauseNotPermitted: func(Step) Verdict {
		return PersonNotPermitted.verdict("The account of the person may have nothing of what the client asked for.")
	},
	CausePaused: func(Step) Verdict { return AccessPaused.verdict("The person has paused this application.") },
}

func clientUnknown(Step) Verdict {
	return ClientUnknown.verdict("The client uses a client id that this server does not know (any more).")
}
