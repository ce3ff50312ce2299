package notice

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/mail"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/text"
)

// Letter is a mail to one user. Its recipient is UserID, or To and Locale without an account.
// Subject and Lines stay empty for a mail about a change.
type Letter struct {
	UserID  string
	To      string
	Locale  string // the language that the recipient chose; "" for none
	Subject text.Sentence
	Lines   []text.Sentence // paragraphs
	Link    string          // the URL to open, or ""

	event   *Event
	stopURL string
}

// destination treats all mails without a change, such as requested links, as one kind.
func (l Letter) destination() destination {
	to := destination{person: l.UserID}
	if l.UserID == "" {
		to.person = l.To
	}
	if l.event != nil {
		to.kind = string(l.event.Kind)
	}
	return to
}

// send delivers a mail. A user without an address is notified at the next visit.
func (t *Notifier) send(ctx context.Context, l Letter) error {
	if l.UserID != "" {
		user, err := t.cfg.Store.User(ctx, l.UserID)
		if err != nil {
			return fmt.Errorf("notice: %w", err)
		}
		l.To, l.Locale = user.Mail, user.Locale
		if l.event != nil {
			l = t.about(l, user)
		}
	}
	if l.To == "" {
		return nil
	}
	texts, err := t.cfg.Texts()
	if err != nil {
		return fmt.Errorf("%w: %w", mail.ErrRefused, err)
	}
	subject, body, html, err := write(l, texts.Match(l.Locale))
	if err != nil {
		return fmt.Errorf("%w: %w", mail.ErrRefused, err)
	}
	return t.cfg.Mailer.Send(ctx, l.To, t.cfg.Product+": "+subject, body, html)
}

// about completes a mail about a change.
func (t *Notifier) about(l Letter, u storage.User) Letter {
	w, ok := kinds[l.event.Kind]
	if !ok {
		w = otherwise
	}
	l.Subject = w.subject
	l.Lines = []text.Sentence{text.Say("letter.account", "name", u.Name, "server", t.cfg.Issuer), w.text}
	from, ok := Moment(l.event.Detail)
	name := l.event.Kind.Name(l.event.Detail)
	switch {
	case l.event.Detail == "":
	case name != "":
		l.Lines = append(l.Lines, text.Say("letter.named", "name", label.Unlinked(name)))
	case ok && l.event.Kind == RecoverLinkMade:
		l.Lines = append(l.Lines, text.Say("letter.good_from", "time", from))
	default:
		l.Lines = append(l.Lines, text.Say("letter.what", "detail", l.event.Detail))
	}
	l.Lines = append(l.Lines, text.Say("letter.when", "time", l.event.At))
	if l.stopURL != "" {
		l.Lines, l.Link = append(l.Lines, text.Say("letter.stop")), l.stopURL
		return l
	}
	l.Lines, l.Link = append(l.Lines, text.Say("letter.was_it_you")), t.cfg.Issuer+"/account/notices"
	return l
}

// letter is simple on purpose: no picture, no external style, no tracking.
var letter = template.Must(template.New("letter").Parse(`<!doctype html>
<html lang="{{.Language}}"{{if .RightToLeft}} dir="rtl"{{end}}>
<head><meta charset="utf-8"><title>{{.Subject}}</title></head>
<body style="font:16px/1.5 sans-serif;max-width:36em;margin:1em auto;padding:0 1em">
<h1 style="font-size:1.25em">{{.Subject}}</h1>
{{range .Lines}}<p>{{.}}</p>
{{end}}{{with .Link}}<p><a href="{{.}}">{{.}}</a></p>
{{end}}</body></html>
`))

// written is a mail in one language.
type written struct {
	Language    string
	RightToLeft bool
	Subject     string
	Lines       []template.HTML
	Link        string
}

func write(l Letter, in *text.Language) (subject, body, html string, err error) {
	same := func(s string) string { return s }
	w := written{
		Language: in.Tag, RightToLeft: in.RightToLeft(), Subject: in.Spell(l.Subject, same, same), Link: l.Link,
	}
	var parts []string
	for _, line := range l.Lines {
		parts = append(parts, in.Spell(line, same, same))
		shown := in.Spell(line, template.HTMLEscapeString, isolated)
		w.Lines = append(w.Lines, template.HTML(shown)) // #nosec G203 -- escaped
	}
	if l.Link != "" {
		parts = append(parts, l.Link)
	}
	var b strings.Builder
	if err := letter.Execute(&b, w); err != nil {
		return "", "", "", err
	}
	return w.Subject, strings.Join(parts, "\n\n") + "\n", b.String(), nil
}

// isolated returns a value that does not reorder the text around it (PE-13).
func isolated(s string) string { return "<bdi>" + template.HTMLEscapeString(s) + "</bdi>" }

// ErrNoMail is returned if no mail server is configured.
var ErrNoMail = errors.New("notice: no mail server is configured")

// Test sends a test mail, and returns when the mail server has accepted or refused it. locale is
// the recipient's language, or "".
func (t *Notifier) Test(ctx context.Context, to, locale string) error {
	if t == nil || t.cfg.Mailer == nil {
		return ErrNoMail
	}
	return t.send(ctx, Letter{
		To: to, Locale: locale, Subject: text.Say("letter.test"),
		Lines: []text.Sentence{text.Say("letter.test_text", "server", t.cfg.Issuer)},
	})
}
