package account

import (
	"cmp"
	"context"
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Pause is an application that the user has paused.
type Pause struct {
	storage.Pause
	Server storage.Resource // only the URI if the server was removed
}

// pauses returns one page of a user's pauses, without those of connected applications, whose
// clients are in known. It also returns the id after which the next page begins, or "".
func (a *Page) pauses(
	ctx context.Context, userID, after string, connected []Connection, known map[string]storage.Client,
) (page []Pause, next string, err error) {
	all, err := a.Store.Pauses(ctx, userID)
	if err != nil {
		return nil, "", refusal.Unavailable(err)
	}
	applications := make([]string, 0, len(all))
	for _, p := range all {
		applications = append(applications, p.Application)
	}
	keys, err := a.Store.ApplicationKeys(ctx, applications)
	if err != nil {
		return nil, "", refusal.Unavailable(err)
	}
	// Merged applications have one pause each, and end them together.
	shown := map[string]bool{}
	for _, c := range connected {
		client := known[c.ClientID]
		shown[storage.PauseID(userID, client.Application(), c.Connection.Resource)] = true
		if !c.PausedAt.IsZero() {
			shown[storage.PauseID(userID, c.Whole.Key, c.Connection.Resource)] = true
		}
	}
	all = slices.DeleteFunc(all, func(p storage.Pause) bool {
		whole := storage.PauseID(userID, keys[p.Application], p.Resource)
		skip := shown[p.ID] || shown[whole]
		shown[whole] = true
		return skip
	})
	if i := slices.IndexFunc(all, func(p storage.Pause) bool { return p.ID == after }); i+1 < len(all) {
		all = all[i+1:]
	}
	if len(all) > PagePauses {
		all, next = all[:PagePauses], all[PagePauses-1].ID
	}
	if len(all) == 0 {
		return nil, "", nil
	}
	catalog, err := a.Catalog.Load(ctx)
	if err != nil {
		return nil, "", refusal.Unavailable(err)
	}
	for _, p := range all {
		server, ok := catalog.Lookup(p.Resource)
		if !ok {
			server = storage.Resource{URI: p.Resource}
		}
		page = append(page, Pause{p, server})
	}
	return page, next, nil
}

// ResumePause is Resume for an application whose grants may have ended during the pause.
func (a *Page) ResumePause(ctx context.Context, p Person, id string) (Outcome, error) {
	if _, err := a.Browsers.ActingAs(ctx, p.Token, p.UserID, entry.Change); err != nil {
		return "", err
	}
	pause, err := a.Store.PauseByID(ctx, id)
	if err == nil && pause.UserID != p.UserID {
		err = storage.ErrNotFound // other users' pauses count as unknown (PE-08)
	}
	if err == nil {
		err = a.Store.EndPause(ctx, p.UserID, id, a.Now())
	}
	done, err := result(Resumed, err)
	if done == Resumed {
		a.Audit.Record(ctx, audit.GrantResumed, audit.Pause(pause))
		a.tellResumed(ctx, p.UserID, cmp.Or(pause.ClientName, pause.ClientID))
	}
	return done, err
}
