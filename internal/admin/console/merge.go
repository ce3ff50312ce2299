package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// mergePart is an application that was merged into another one.
type mergePart struct {
	ID       string `json:"id"`
	Name     string `json:"name"` // of one of its registrations
	CountsAs string `json:"counts_as"`
}

// merged shows an application with those that were merged into it, each with a way to split it off.
func (v *view) merged(d admin.ApplicationDetails, p *pages.Console) {
	of := url.Values{"id": {d.ID}}
	if len(d.Merged) > 0 {
		t := table{
			title: "Merged into it", columns: []string{"name", "id"}, shapes: map[string]shape{"name": clientName},
			rows: []string{"application split"}, as: map[string]string{"id": "id"},
		}
		p.Parts = append(p.Parts, v.table(t, valueOf(mergeParts(d)), of))
	}
	p.Parts = append(v.parts(nounOf("application show"), members(valueOf([]admin.ApplicationDetails{d}).Index(0)), of),
		p.Parts...)
}

// mergeParts returns what was merged into an application, with the names by which it registered.
func mergeParts(d admin.ApplicationDetails) (out []mergePart) {
	names := map[string]string{}
	for _, c := range d.Clients {
		client := storage.Client{
			ID: c.ID, Name: c.Name, Source: storage.ClientSource(c.Source), RedirectURIs: c.RedirectURIs,
		}
		names[client.Application()] = c.Name
	}
	for _, key := range d.Merged {
		out = append(out, mergePart{ID: key, Name: names[key], CountsAs: d.ID})
	}
	return out
}

// chosen shows both applications of a merge before it happens. The form that it shows is bound to their IDs, because a
// name can mean another application by the time it is sent.
func (v *view) chosen(verb admin.Verb, state actState, posted url.Values) {
	if err := v.permit(verb, state.Subject); err != nil {
		v.failed(err)
		return
	}
	a, into, err := v.both(posted)
	if status, told := statusOf(err); err != nil && told {
		v.form(status, verb, state, posted, err.Error())
		return
	}
	switch {
	case err != nil:
		v.failed(err)
	case a.ID == into.ID:
		v.form(http.StatusConflict, verb, state, posted, "Both are one application already.")
	default:
		state.Shown = url.Values{"id": {a.ID}, "into": {into.ID}}
		v.form(http.StatusOK, verb, state, posted, "")
	}
}

func (v *view) both(of url.Values) (a, into admin.ApplicationDetails, err error) {
	a, err = admin.ApplicationShow.Do(v.r.Context(), v.as, admin.ApplicationID{ID: of.Get("id")})
	if err == nil {
		into, err = admin.ApplicationShow.Do(v.r.Context(), v.as, admin.ApplicationID{ID: of.Get("into")})
	}
	return a, into, err
}

// confirmMerge asks whether to merge the two applications that were chosen.
func (v *view) confirmMerge(status int, verb admin.Verb, state actState, problem string) {
	name, n := verb.Spec().Name, applications
	a, into, err := v.both(state.given())
	if err != nil {
		v.failed(err)
		return
	}
	step, err := v.visitors.Seal(v.w, v.r, purposeAct, state)
	if err != nil {
		v.visitors.Fail(v.w, v.r, err)
		return
	}
	v.page(status, n.name, pages.Console{
		Title: titleOf(name, named(a.Name, a.ID)), Trail: v.trail(n, state.Subject), Problem: problem,
		Parts: []pages.ConsolePart{
			v.table(table{title: "The two", noun: n.name, columns: append([]string{"id"}, n.columns...)},
				valueOf([]admin.Application{a.Application, into.Application}), nil),
			pages.ConsoleForm{
				Lead: "This makes one application of " + counts(a.Application) + ", and " + counts(into.Application) +
					". Both then count as " + named(into.Name, into.ID) + ". A user who has paused one of them has then paused both.",
				Action: v.url(name, state.Subject), Step: step, Button: actName(name), Grave: verb.Spec().Takes,
				BackURL: v.back(n, verb.Spec(), state.Subject),
			},
		},
	})
}

// counts names an application, with its places and how much depends on it.
func counts(a admin.Application) string {
	text := named(a.Name, a.ID)
	if !a.Verified {
		text += " (unverified)"
	}
	if len(a.Places) > 0 {
		text += " at " + strings.Join(a.Places, ", ")
	}
	more := ""
	if a.More {
		more = "at least "
	}
	return text + " with " + more + counted(a.Grants, "grant", "grants") + " of " +
		counted(a.People, "user", "users") + " and " + counted(a.Registrations, "registration", "registrations")
}
