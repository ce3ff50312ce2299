package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// printTree prints grants with their sub-agents below them.
func printTree(s std, views []admin.Grant) error {
	var out strings.Builder
	for _, v := range views {
		of := holder(v)
		fmt.Fprintf(&out, "%s  %s, %s: %s\n", v.ID, printable(of), printable(v.Resource), printable(v.Scope))
		for _, h := range v.Helpers {
			fmt.Fprintf(&out, "%s%s  %s: %s, until %s\n", strings.Repeat("    ", h.Depth), h.ID, printable(h.Name),
				printable(h.Scope), moment(h.ExpiresAt))
		}
	}
	_, err := io.WriteString(s.out, out.String())
	return err
}

// isHelper reports whether an ID belongs to a sub-agent.
func isHelper(id string) bool { return strings.HasPrefix(id, "nod_") }

// revokeHelper revokes a sub-agent, with those below it.
func revokeHelper(ctx context.Context, s std, by admin.Caller, id string, asJSON bool) error {
	n, err := admin.HelperRevoke.Do(ctx, by, admin.HelperID{ID: id})
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(s.out, []admin.Helper{n})
	}
	_, err = fmt.Fprintf(s.out, "revoked %s (%s, of %s), with the helpers below it\n", n.ID, printable(n.Name), n.Grant)
	return err
}
