// Package text contains the texts of the pages, in every language.
//
// # For translators
//
// A language is a directory with its BCP 47 tag as its name (de, pt, zh). Each file in it contains
// the texts of one page and has the page's name. A file is one JSON object that maps the name of a
// text to the text.
//
//	"lead": "This browser is no longer signed in here."
//	"problem": "Sign in at {provider} first."
//	"apps": {"one": "{n} application", "other": "{n} applications"}
//
// A word in braces is replaced by the page: with a name, an address or a date. Each language has
// the same words in braces as English, in any order. A text that depends on a number has the plural
// forms of its language (one, few, many, other, ...: see
// https://cldr.unicode.org/index/cldr-spec/plural-rules). A form may omit {n}.
//
// Texts are plain: no markup, no entities. Write politely and in short sentences, in words that
// people know who are not programmers. The tests fail for a missing text, for a text that English
// lacks, and for a missing or unknown word in braces.
//
// # For programmers
//
// A template of package web names a text by its file and its name, followed by pairs of a value's
// name and the value. A value is put in <bdi>, so that a name written from right to left does not
// reorder the sentence around it. The functions strong, code and host put it in another element:
//
//	{{t "signedout.lead"}}
//	{{t "consent.signed_in" "name" (strong (name .Username))}}
//	{{n "account.apps" (len .Apps)}}
//
// Both t and n must be used alone: not in a pipeline, and not as an argument. They are expanded
// when the template is parsed, once for each language, so that showing a page needs no lookups. In
// an attribute and in a title, a value has no element. Go code passes a sentence to a page with
// pages.Say.
package text
