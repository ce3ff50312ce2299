package provider

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/claim"
	"github.com/mcp-authd/mcp-authd/internal/strictjson"
)

// Limits of a list. Page numbers are counted here, because a link in the response could lead
// anywhere. Organisations beyond the last page are unknown.
const (
	pageSize = 100
	maxPages = 10
	paged    = "?per_page=100&page="
)

// pages calls each with every object of a list and skips other elements. The page number is
// appended to at.
func pages(ctx context.Context, u *plainOAuth, t Tokens, at string, each func(map[string]any)) error {
	ctx = listing(ctx)
	for page := 1; page <= maxPages; page++ {
		body, _, err := u.get(ctx, at+strconv.Itoa(page), t.Access)
		if err != nil {
			return err
		}
		v, err := strictjson.Value(body, strictjson.Limits{Names: strictjson.Exact})
		found, ok := v.([]any)
		if err != nil || v != nil && !ok {
			return fmt.Errorf("%w: not a list of one meaning", ErrGarbage)
		}
		for _, one := range found {
			if m, ok := one.(map[string]any); ok {
				each(m)
			}
		}
		if len(found) != pageSize {
			break
		}
	}
	return nil
}

// names returns the given members of every object of a list, joined by slashes.
func names(ctx context.Context, u *plainOAuth, t Tokens, at string, paths ...string) ([]any, error) {
	out := []any{}
	err := pages(ctx, u, t, at, func(m map[string]any) {
		var parts []string
		for _, path := range paths {
			if v, ok := member(m, path); ok {
				if s := claim.Text(map[string]any{"": v}, ""); s != "" {
					parts = append(parts, s)
				}
			}
		}
		if len(parts) == len(paths) {
			out = append(out, strings.Join(parts, "/"))
		}
	})
	return out, err
}
