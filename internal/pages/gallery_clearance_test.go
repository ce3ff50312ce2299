package pages

import (
	"net/http"
	"time"
)

func sampleClearance() Clearance {
	plain := func(s string) []Piece { return []Piece{{Text: s}} }
	return Clearance{
		CallToClear: CallToClear{
			Action: "/clearance/clr_4f1d", Step: "sealed-step",
			Client:   Party{Name: "Claude", Host: "claude.ai", URL: "https://claude.ai/oauth/client.json"},
			Resource: notes, Tool: plain("delete_notes"), Until: time.Date(2026, 11, 21, 12, 5, 0, 0, time.UTC),
		},
		Username: "alice",
		Arguments: []Argument{
			{Name: plain("folder"), Kind: ArgumentText, Value: plain("Travel 2026")},
			{Name: plain("older_than_days"), Kind: ArgumentLiteral, Value: plain("30")},
			{Name: plain("reason"), Kind: ArgumentText, Value: []Piece{
				{Text: "tidy up"}, {Text: "U+202E", Marked: true}, {Text: "U+000A", Marked: true, Break: true},
				{Text: "for good"},
			}},
			{Name: plain("only"), Kind: ArgumentList, Count: "2"},
			{Depth: 1, Index: "1", Kind: ArgumentObject, Count: "1"},
			{Depth: 2, Name: plain("tag"), Kind: ArgumentText, Value: plain("draft")},
			{Depth: 1, Index: "2", Kind: ArgumentList, Count: "0"},
			{Name: plain("options"), Kind: ArgumentObject, Count: "0"},
		},
	}
}

// clearanceSamples returns the pages about the approval of one tool call.
func clearanceSamples() []sample {
	over := func(outcome ClearanceOutcome) func(*Pages, http.ResponseWriter) {
		return func(p *Pages, w http.ResponseWriter) {
			p.ClearanceOver(w, 200, ClearanceOver{Outcome: outcome, HomeURL: "/account"})
		}
	}
	other := sampleClearance()
	other.For, other.SelfRegistered, other.Client.Host, other.Arguments = "bob", true, "", nil
	return []sample{
		{"clearance", func(p *Pages, w http.ResponseWriter) { p.Clearance(w, sampleClearance()) }},
		{"clearance-other", func(p *Pages, w http.ResponseWriter) { p.Clearance(w, other) }},
		{"clearanceover", over(ClearanceGiven)},
		{"clearanceover-refused", over(ClearanceRefused)},
		{"clearanceover-late", over(ClearanceLate)},
		{"clearanceelsewhere", func(p *Pages, w http.ResponseWriter) {
			p.ClearanceElsewhere(w, ClearanceElsewhere{
				CallToClear: sampleClearance().CallToClear, Approvers: []string{"olga", "otto"}, GoesOn: true,
				URL: "https://auth.example.com/clearance/clr_4f1d", HomeURL: "/account",
			})
		}},
		{"clearanceelsewhere-administrator", func(p *Pages, w http.ResponseWriter) {
			p.ClearanceElsewhere(w, ClearanceElsewhere{
				CallToClear: other.CallToClear, URL: "https://auth.example.com/clearance/clr_4f1d", HomeURL: "/account",
			})
		}},
		{"clearanceover-none", over(ClearanceNone)},
	}
}
