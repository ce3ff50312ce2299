package notice

import (
	"context"
	"fmt"
	"html/template"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/mail"
)

// Letter is a message to one person. UserID says to whom, or To for one without an account; the
// rest is empty for a letter about a change.
type Letter struct {
	UserID  string
	To      string
	Subject string
	Lines   []string // paragraphs of plain text
	Link    string   // "" or what to open

	event   *Event
	stopURL string
}

// send delivers a letter. A person who has no address is told at the next visit.
func (t *Teller) send(ctx context.Context, l Letter) error {
	if l.UserID != "" {
		user, err := t.cfg.Store.User(ctx, l.UserID)
		if err != nil {
			return fmt.Errorf("notice: %w", err)
		}
		l.To = user.Mail
		if l.event != nil {
			l = t.about(l, user.Name)
		}
	}
	if l.To == "" {
		return nil
	}
	text, html, err := t.write(l)
	if err != nil {
		return fmt.Errorf("%w: %w", mail.ErrRefused, err)
	}
	return t.cfg.Mailer.Send(ctx, l.To, t.cfg.Product+": "+l.Subject, text, html)
}

// about completes a letter about a change.
func (t *Teller) about(l Letter, name string) Letter {
	w, ok := kinds[l.event.Kind]
	if !ok {
		w = wording{"Your account was changed", "Your account was changed."}
	}
	l.Subject = w.subject
	l.Lines = []string{fmt.Sprintf("Account: %s at %s", name, t.cfg.Issuer), w.text}
	if l.event.Detail != "" {
		l.Lines = append(l.Lines, "What: "+l.event.Detail)
	}
	l.Lines = append(l.Lines, "When: "+l.event.At.Format("2006-01-02 15:04 UTC"))
	if l.stopURL != "" {
		l.Lines = append(l.Lines, "If you did not ask for it, stop it here; the link is then of no use:")
		l.Link = l.stopURL
		return l
	}
	l.Lines = append(l.Lines, "If this was you, there is nothing to do. If it was not, open your account, "+
		"end what you do not know, and tell the operator of this server:")
	l.Link = t.cfg.Issuer + "/account/notices"
	return l
}

// letter is simple on purpose: no picture, no style from elsewhere, nothing that reports back.
var letter = template.Must(template.New("letter").Parse(`<!doctype html>
<html><head><meta charset="utf-8"><title>{{.Subject}}</title></head>
<body style="font:16px/1.5 sans-serif;max-width:36em;margin:1em auto;padding:0 1em">
<h1 style="font-size:1.25em">{{.Subject}}</h1>
{{range .Lines}}<p>{{.}}</p>
{{end}}{{with .Link}}<p><a href="{{.}}">{{.}}</a></p>
{{end}}</body></html>
`))

func (t *Teller) write(l Letter) (text, html string, err error) {
	var b strings.Builder
	if err := letter.Execute(&b, l); err != nil {
		return "", "", err
	}
	parts := append([]string{}, l.Lines...)
	if l.Link != "" {
		parts = append(parts, l.Link)
	}
	return strings.Join(parts, "\n\n") + "\n", b.String(), nil
}
