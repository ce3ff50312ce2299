package console

import "strings"

// wording is the console's text for an operation. The other faces describe operations in their own
// words: a command has flags, and a page has labels. %s stands for the name of the object.
type wording struct {
	act   string // label of the buttons and links that lead to the operation
	title string // heading of its page
	lead  string // what the page shows, or what the change will do
	done  string // result of the change
}

// about returns a text with the name of the object.
func about(text, name string) string { return strings.ReplaceAll(text, "%s", name) }

// wordingOf returns the text for an operation.
func wordingOf(name string) wording {
	if w, ok := nounOf(name).texts[name]; ok {
		return w
	}
	_, verbs, _ := strings.Cut(name, " ")
	return wording{act: caption(verbs), title: caption(name)}
}

// actName returns the button label of an operation.
func actName(name string) string { return wordingOf(name).act }

// titleOf returns the heading of the page of an operation on an object.
func titleOf(name, object string) string { return about(wordingOf(name).title, object) }

// fieldText is the text of a form field.
type fieldText struct{ name, hint string }

// labelOf returns the text of a field in the form of an operation.
func labelOf(operation, field string) fieldText {
	for _, key := range []string{operation + " " + field, field} {
		if l, ok := formLabels[key]; ok {
			return l
		}
	}
	return fieldText{name: caption(field)}
}

// choice is an option of a form field.
type choice struct{ value, text string }

// choices holds the options of fields with few possible values, by the field's name, or by
// operation and name. The first is the default.
var choices = map[string][]choice{
	"role": {
		{"", "No role"}, {"administrator", "Administrator: everything"}, {"auditor", "Auditor: reads everything"},
		{"support", "Support: helps users with their accounts"},
	},
	"user set-role role": {
		{"none", "No role"}, {"administrator", "Administrator: everything"}, {"auditor", "Auditor: reads everything"},
		{"support", "Support: helps users with their accounts"},
	},
	"scopes.access": {{"", "Not stated"}, {"read", "Read"}, {"write", "Write"}, {"admin", "Administer"}},
	"dpop":          {{"optional", "Not required"}, {"required", "Required"}},
	"auth_method": {
		{"", "The usual one for its grant types"}, {"none", "None: a public client"},
		{"client_secret_basic", "Secret in the header (client_secret_basic)"},
		{"client_secret_post", "Secret in the body (client_secret_post)"},
		{"private_key_jwt", "Keys (private_key_jwt)"},
	},
	"kind": {{"", "As in the preset"}, {"enterprise", "Users of an organization"}, {"workload", "Programs"}},
}

// choicesOf returns the options of a field of an operation, or nil for a field that takes any text.
func choicesOf(operation, field string) []choice {
	for _, key := range []string{operation + " " + field, field} {
		if all, ok := choices[key]; ok {
			return all
		}
	}
	return nil
}
