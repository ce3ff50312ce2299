// Package text has the words of the pages, in every language.
//
// # For translators
//
// A language is a directory, named by its BCP 47 tag (de, pt, zh); each file in it is named for
// the page whose texts it has. A file is one JSON object: the name of a text, and the text.
//
//	"lead": "This browser is no longer signed in here."
//	"problem": "Sign in at {provider} first."
//	"apps": {"one": "{n} application", "other": "{n} applications"}
//
// A word in braces stands for what the page puts there: a name, an address, a date. Each
// language has the same words in braces as English, in the order that it needs. A text that
// depends on a number has the plural forms of its language (one, few, many, other, ...: see
// https://cldr.unicode.org/index/cldr-spec/plural-rules); a form may leave {n} out.
//
// Texts are plain: no markup, no entities. Write to the person politely and in short sentences,
// in words that people know who are not programmers. A missing text, one that English has not,
// and a word in braces that is missing or unknown fail the tests.
//
// # For programmers
//
// A template of package web names a text by its file and its name; the values follow by their
// names. A value stands in <bdi>, so that a name that is written from right to left does not
// reorder the sentence around it; strong, code and host give it an element of its own:
//
//	{{t "signedout.lead"}}
//	{{t "consent.signed_in" "name" (strong (name .Username))}}
//	{{n "account.apps" (len .Apps)}}
//
// Both stand alone: not in a pipeline, not as an argument. They are put into the template when it
// is parsed, once for each language, so that showing a page looks nothing up. In an attribute and
// in a title a value stands without an element. Go code gives a page a sentence by web.Say.
package text
