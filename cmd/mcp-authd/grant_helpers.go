package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/storage"
)

// helperView is a helper of a grant as commands show it.
type helperView struct {
	ID        string    `json:"id"`
	Grant     string    `json:"grant"`
	Parent    string    `json:"parent,omitempty"` // the helper that it got its token from
	Name      string    `json:"name"`             // as the client says
	Scope     string    `json:"scope"`
	Depth     int       `json:"depth"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

func viewHelper(n storage.Node) helperView {
	return helperView{
		ID: n.ID, Grant: n.GrantID, Parent: n.ParentID, Name: n.Name, Scope: n.Scopes.String(), Depth: n.Depth,
		CreatedAt: n.CreatedAt, ExpiresAt: n.ExpiresAt,
	}
}

// addHelpers puts the live helpers of each grant into its view, each behind what it hangs from.
func (a *app) addHelpers(ctx context.Context, views []grantView) error {
	ids := make([]string, len(views))
	for i, v := range views {
		ids[i] = v.ID
	}
	nodes, err := a.store.Nodes(ctx, ids, time.Now())
	if err != nil {
		return err
	}
	below := map[string][]storage.Node{} // a node, or the grant of those that hang from it
	for _, n := range nodes {
		from := n.ParentID
		if from == "" {
			from = n.GrantID
		}
		below[from] = append(below[from], n)
	}
	for i := range views {
		views[i].Helpers = branches(nil, below, views[i].ID)
	}
	return nil
}

func branches(out []helperView, below map[string][]storage.Node, from string) []helperView {
	for _, n := range below[from] {
		out = branches(append(out, viewHelper(n)), below, n.ID)
	}
	return out
}

// printTree prints grants with their helpers below them.
func printTree(s std, views []grantView) error {
	var out strings.Builder
	for _, v := range views {
		of := v.holder()
		fmt.Fprintf(&out, "%s  %s, %s: %s\n", v.ID, printable(of), printable(v.Resource), printable(v.Scope))
		for _, h := range v.Helpers {
			fmt.Fprintf(&out, "%s%s  %s: %s, until %s\n", strings.Repeat("    ", h.Depth), h.ID, printable(h.Name),
				printable(h.Scope), moment(h.ExpiresAt))
		}
	}
	_, err := io.WriteString(s.out, out.String())
	return err
}

// isHelper reports whether an id is that of a helper.
func isHelper(id string) bool { return strings.HasPrefix(id, "nod_") }

// cutHelper ends a helper, with the helpers below it.
func (a *app) cutHelper(ctx context.Context, s std, id string, asJSON bool) error {
	n, err := a.store.CutNode(ctx, id, "", time.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return fmt.Errorf("there is no helper %q, or its token has expired; see: mcp-authd grant list --tree", id)
	case err != nil:
		return err
	}
	g, err := a.store.Grant(ctx, n.GrantID)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	a.audit.Record(ctx, audit.HelperCut, audit.Grant(g), slog.String("client_id", g.ClientID), audit.Node(n),
		slog.String("revoked_by", string(storage.ByOperator)))
	if asJSON {
		return printJSON(s.out, []helperView{viewHelper(n)})
	}
	_, err = fmt.Fprintf(s.out, "revoked %s (%s, of %s), with the helpers below it\n", n.ID, printable(n.Name), n.GrantID)
	return err
}
