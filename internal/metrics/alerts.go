package metrics

func alerts() map[string][]Alert {
	return map[string][]Alert{
		requestDuration: ofRequests(), guardDuration: ofGuards(), storeDuration: ofSlowStores(),
		storeFailures: ofStores(), providerDuration: ofProviders(), keyAge: ofKeys(), statusAge: ofStatusLists(),
		signInSteps: ofSignIns(), events: ofEvents(), eventsOldest: ofReceivers(), auditLost: ofAudit(),
		databaseFree: ofDatabase(),
		sinkOldest:   ofWaitingSinks(), sinkLost: ofLostBySinks(), certificateLeft: ofCertificates(),
		certificateFailed: ofAttempts(),
	}
}

func ofRequests() []Alert {
	const count = requestDuration + "_count"
	const bucket = requestDuration + "_bucket"
	return []Alert{{
		Name: "McpAuthdErrors",
		Expr: "sum(rate(" + count + `{status="5xx"}[5m])) / sum(rate(` + count + "[5m])) > 0.05",
		For:  "5m", Severity: "critical",
		Summary: "More than 5 % of the requests to the authorization server fail.",
		Action:  "Look for lines of level ERROR in the log, and at the failures of the store.",
		Fires: []Series{
			{count + `{endpoint="token",status="5xx"}`, "0+1x60"},
			{count + `{endpoint="token",status="2xx"}`, "0+9x60"},
		},
		Quiet: []Series{
			{count + `{endpoint="token",status="5xx"}`, "0+1x60"},
			{count + `{endpoint="token",status="2xx"}`, "0+99x60"},
		},
	}, {
		Name: "McpAuthdTokensSlow",
		Expr: "histogram_quantile(0.95, sum by (le) (rate(" + bucket + `{endpoint="token"}[5m]))) > 1`,
		For:  "10m", Severity: "warning",
		Summary: "One of twenty token requests takes more than a second.",
		Action:  "Compare with the verbs of the store and the requests to providers, which a token may wait for.",
		Fires: []Series{
			{bucket + `{endpoint="token",le="1"}`, "0+1x60"}, {bucket + `{endpoint="token",le="2.5"}`, "0+10x60"},
			{bucket + `{endpoint="token",le="+Inf"}`, "0+10x60"},
		},
		Quiet: []Series{
			{bucket + `{endpoint="token",le="0.05"}`, "0+10x60"}, {bucket + `{endpoint="token",le="1"}`, "0+10x60"},
			{bucket + `{endpoint="token",le="+Inf"}`, "0+10x60"},
		},
	}}
}

func ofGuards() []Alert {
	const count = guardDuration + "_count"
	return []Alert{{
		Name: "McpAuthdGuardUnavailable",
		Expr: "sum(rate(" + count + `{outcome="unavailable"}[5m])) > 0`,
		For:  "5m", Severity: "critical",
		Summary: "The gateway cannot judge tokens, and refuses calls with 503.",
		Action:  "Look at the failures of the store: the guard asks it whether a grant is live.",
		Fires:   []Series{{count + `{outcome="unavailable"}`, "0+2x60"}},
		Quiet:   []Series{{count + `{outcome="allowed"}`, "0+50x60"}, {count + `{outcome="unavailable"}`, "5+0x60"}},
	}}
}

func ofSlowStores() []Alert {
	const bucket = storeDuration + "_bucket"
	return []Alert{{
		Name: "McpAuthdStoreSlow",
		Expr: "histogram_quantile(0.95, sum by (le) (rate(" + bucket + "[5m]))) > 0.25",
		For:  "10m", Severity: "warning",
		Summary: "One of twenty verbs of the store takes more than a quarter of a second.",
		Action:  "Look at the load, the disk and the replication of the database; the dashboard says which verbs are slow.",
		Fires: []Series{
			{bucket + `{verb="RedeemCode",le="0.25"}`, "0+1x60"}, {bucket + `{verb="RedeemCode",le="1"}`, "0+10x60"},
			{bucket + `{verb="RedeemCode",le="+Inf"}`, "0+10x60"},
		},
		Quiet: []Series{
			{bucket + `{verb="RedeemCode",le="0.005"}`, "0+10x60"},
			{bucket + `{verb="RedeemCode",le="0.25"}`, "0+10x60"},
			{bucket + `{verb="RedeemCode",le="+Inf"}`, "0+10x60"},
		},
	}}
}

func ofStores() []Alert {
	return []Alert{{
		Name: "McpAuthdStoreFails",
		Expr: "sum(rate(" + storeFailures + "[5m])) > 0",
		For:  "5m", Severity: "critical",
		Summary: "The database fails.",
		Action:  "Ask /readyz, and run mcp-authd doctor: is the database reachable, writable, and its disk not full?",
		Fires:   []Series{{storeFailures + `{verb="RotateRefresh"}`, "0+1x60"}},
		Quiet:   []Series{{storeFailures + `{verb="RotateRefresh"}`, "3+0x60"}},
	}}
}

func ofProviders() []Alert {
	const count = providerDuration + "_count"
	return []Alert{{
		Name: "McpAuthdProviderFails",
		Expr: "sum by (connector) (rate(" + count + `{outcome="failed"}[10m])) / sum by (connector) (rate(` +
			count + "[10m])) > 0.5",
		For: "5m", Severity: "critical",
		Summary: "More than half of the requests to a provider fail: people cannot sign in there.",
		Action:  "Run mcp-authd doctor, which asks the provider, and look at its status page.",
		Labels:  map[string]string{"connector": "corp"},
		Fires: []Series{
			{count + `{connector="corp",outcome="failed"}`, "0+3x60"},
			{count + `{connector="corp",outcome="ok"}`, "0+1x60"},
			{count + `{connector="other",outcome="failed"}`, "0+0x60"},
			{count + `{connector="other",outcome="ok"}`, "0+9x60"},
		},
		Quiet: []Series{
			{count + `{connector="corp",outcome="failed"}`, "0+1x60"},
			{count + `{connector="corp",outcome="ok"}`, "0+9x60"},
		},
	}}
}

func ofKeys() []Alert {
	return []Alert{{
		Name: "McpAuthdSigningKeyOverdue",
		Expr: "max(" + keyAge + ") > max(" + keyRotation + ") + 86400 and max(" + keyRotation + ") > 0",
		For:  "15m", Severity: "warning",
		Summary: "The signing key should have been replaced a day ago.",
		Action:  "Look in the log for why keys are not tended, and run mcp-authd keys rotate.",
		Fires:   []Series{{keyAge, "8000000+60x60"}, {keyRotation, "7776000+0x60"}},
		Quiet:   []Series{{keyAge, "9000000+60x60"}, {keyRotation, "0+0x60"}},
	}}
}

func ofStatusLists() []Alert {
	return []Alert{{
		Name: "McpAuthdStatusListOld",
		Expr: "max(" + statusAge + ") > 120",
		For:  "5m", Severity: "critical",
		Summary: "Revoked grants are not published: MCP servers that read status lists still take their tokens.",
		Action:  "Look at the failures of the store and at the log: a list needs the database and a signing key.",
		Fires:   []Series{{statusAge, "0+60x60"}},
		Quiet:   []Series{{statusAge, "0+0x60"}},
	}}
}

func ofCertificates() []Alert {
	const domain = `{domain="auth.example.com"}`
	return []Alert{{
		Name: "McpAuthdCertificateEnds",
		Expr: "min by (domain) (" + certificateLeft + ") < 1209600 and min by (domain) (" + certificateLeft +
			") < 0.25 * min by (domain) (" + certificateTime + ")",
		For: "15m", Severity: "critical",
		Summary: "A certificate ends within two weeks, and was not renewed.",
		Action:  "Run mcp-authd doctor, and look in the log for why: every attempt says what to do.",
		Labels:  map[string]string{"domain": "auth.example.com"},
		Fires:   []Series{{certificateLeft + domain, "1209000-60x60"}, {certificateTime + domain, "7776000+0x60"}},
		// The certificate is valid for six days and will be renewed two days before its end.
		Quiet: []Series{{certificateLeft + domain, "172800-60x60"}, {certificateTime + domain, "518400+0x60"}},
	}}
}

func ofAttempts() []Alert {
	const domain = `{domain="auth.example.com"}`
	return []Alert{{
		Name: "McpAuthdCertificateFails",
		Expr: "min by (domain) (" + certificateFailed + ") > 0",
		For:  "30m", Severity: "warning",
		Summary: "No replica gets a certificate by ACME: https does not work yet, or the previous certificate is still served.",
		Action:  "Look in the log at the last attempt: it says what to do.",
		Labels:  map[string]string{"domain": "auth.example.com"},
		Fires:   []Series{{certificateFailed + domain, "1+0x60"}},
		Quiet:   []Series{{certificateFailed + domain, "1x20 0x40"}},
	}}
}

func ofSignIns() []Alert {
	const consented, redeemed = signInSteps + `{step="consented"}`, signInSteps + `{step="redeemed"}`
	return []Alert{{
		Name: "McpAuthdCodesNotRedeemed",
		Expr: "sum(increase(" + redeemed + "[30m])) < 0.5 * sum(increase(" + consented + "[30m])) and sum(increase(" +
			consented + "[30m])) > 10",
		For: "10m", Severity: "warning",
		Summary: "Most people who consent do not get back to their application.",
		Action: "Look at token.refused in the log: its error and client_id say which applications fail, and why. " +
			"Without one, the applications never ask.",
		Fires: []Series{{consented, "0+2x60"}, {redeemed, "0+0x60"}},
		Quiet: []Series{{consented, "0+2x60"}, {redeemed, "0+2x60"}},
	}}
}

func ofEvents() []Alert {
	const reuse, throttled = events + `{event="token.reuse"}`, events + `{event="login.throttled"}`
	const dropped = events + `{event="securityevent.dropped"}`
	return []Alert{{
		Name: "McpAuthdSecurityEventsDropped",
		Expr: "sum(increase(" + dropped + "[1h])) > 0",
		For:  "0m", Severity: "critical",
		Summary: "A receiver was away for so long that it misses security events.",
		Action:  "Tell it by other means what was cut: securityevent.dropped in the log names the receiver.",
		Fires:   []Series{{dropped, "0x50 1x10"}},
		Quiet:   []Series{{dropped, "1+0x60"}},
	}, {
		Name: "McpAuthdTokenReuse",
		Expr: "sum(increase(" + reuse + "[1h])) > 3",
		For:  "0m", Severity: "warning",
		Summary: "Spent codes or refresh tokens came again, and their grants were ended: a client is broken, or tokens were stolen.",
		Action:  "Look at token.reuse in the log: one client_id for all of them is a broken client.",
		Fires:   []Series{{reuse, "0+1x60"}},
		Quiet:   []Series{{reuse, "1+0x60"}},
	}, {
		Name: "McpAuthdPasswordGuessing",
		Expr: "sum(increase(" + throttled + "[15m])) > 20",
		For:  "5m", Severity: "warning",
		Summary: "Passwords are guessed: sign-ins are slowed down again and again.",
		Action:  "Look at login.throttled in the log: its remote is the network. Consider passkeys alone.",
		Fires:   []Series{{throttled, "0+5x60"}},
		Quiet:   []Series{{throttled, "0+1x60"}},
	}}
}

func ofReceivers() []Alert {
	return []Alert{{
		Name: "McpAuthdSecurityEventsWait",
		Expr: "max by (receiver) (" + eventsOldest + ") > 900",
		For:  "5m", Severity: "critical",
		Summary: "A receiver has not taken security events for a quarter of an hour: access that was revoked here continues there.",
		Action:  "Run mcp-authd events list and mcp-authd events test with the receiver.",
		Labels:  map[string]string{"receiver": "siem"},
		Fires:   []Series{{eventsOldest + `{receiver="siem"}`, "0+60x60"}},
		Quiet:   []Series{{eventsOldest + `{receiver="siem"}`, "0+0x60"}},
	}}
}

func ofAudit() []Alert {
	return []Alert{{
		Name: "McpAuthdAuditLost",
		Expr: "sum(" + auditLost + ") > 0",
		For:  "0m", Severity: "critical",
		Summary: "Entries of the audit log were lost.",
		Action:  "Look in the log for why: the data directory or the database did not take them.",
		Fires:   []Series{{auditLost, "0x30 2x30"}},
		Quiet:   []Series{{auditLost, "0x60"}},
	}, {
		Name: "McpAuthdAuditUnsigned",
		Expr: "max(" + auditUnsigned + ") > 150",
		For:  "1m", Severity: "critical",
		Summary: "The audit log is not signed any more.",
		Action:  "Run mcp-authd doctor, which says why. If the log was changed, keep a copy of the database.",
		Fires:   []Series{{auditUnsigned, "0x50 60+60x10"}},
		Quiet:   []Series{{auditUnsigned, "0x40 60x2 0x18"}},
	}}
}

func ofDatabase() []Alert {
	return []Alert{{
		Name: "McpAuthdDiskFullSoon",
		Expr: "min(" + databaseFree + ") < 30 * max(" + databaseGrowth + ")",
		For:  "1h", Severity: "warning",
		Summary: "The disk of the database is full within 30 days.",
		Action:  "Make room on it, or keep the audit log for a shorter time (audit.keep).",
		Fires:   []Series{{databaseFree, "2000x180"}, {databaseGrowth, "100x180"}},
		Quiet:   []Series{{databaseFree, "4000x180"}, {databaseGrowth, "100x180"}},
	}}
}

func ofWaitingSinks() []Alert {
	return []Alert{{
		Name: "McpAuthdAuditSinkWaits",
		Expr: "max by (sink) (" + sinkOldest + ") > 900",
		For:  "5m", Severity: "warning",
		Summary: "A sink has not taken entries of the audit log for a quarter of an hour.",
		Action:  "Run mcp-authd doctor, which says why. Nothing is lost before entries are removed by their age.",
		Labels:  map[string]string{"sink": "siem"},
		Fires:   []Series{{sinkOldest + `{sink="siem"}`, "0+60x60"}},
		Quiet:   []Series{{sinkOldest + `{sink="siem"}`, "0+0x60"}},
	}}
}

func ofLostBySinks() []Alert {
	return []Alert{{
		Name: "McpAuthdAuditSinkLost",
		Expr: "max by (sink) (" + sinkLost + ") - max by (sink) (" + sinkLost + " offset 1h) > 0",
		For:  "0m", Severity: "critical",
		Summary: "A sink will never have some entries of the audit log.",
		Action:  "Look in the log for which; they were removed by their age, or run mcp-authd audit verify.",
		Labels:  map[string]string{"sink": "siem"},
		Fires:   []Series{{sinkLost + `{sink="siem"}`, "0x30 2x30"}},
		Quiet:   []Series{{sinkLost + `{sink="siem"}`, "3x90"}},
	}}
}
