package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/pages"
)

// overview shows the first page: findings that need attention, counts, and recent failures.
func (v *view) overview() {
	p := pages.Console{
		Title: "Overview", Overview: true, Live: true,
	}
	if first := (firstSteps{v}).part(); first != nil {
		p.Parts = append(p.Parts, first)
	}
	failed := v.lastDay()
	p.Parts = append(p.Parts, v.attention(failed), pages.ConsoleTiles{Tiles: v.tiles(failed)})
	if failed != nil && len(failed.Rows) > 0 {
		last := *failed
		last.Rows, last.Title = last.Rows[:min(len(last.Rows), few)], "Latest failures"
		last.NextURL, last.NextName = v.failedURL(), "All failures of the last day"
		p.Parts = append(p.Parts, last)
	}
	v.page(http.StatusOK, "", p)
}

const day = 24 * time.Hour

// maxCounted limits the counts on the first page.
const maxCounted = 500

var counting = admin.Searched{Paging: admin.Paging{Limit: maxCounted}}

// failedURL returns the list of attempts that failed in the last day.
func (v *view) failedURL() string {
	since := v.cfg.Now().Add(-day).UTC().Format(localMinute)
	return v.url("attempt list", url.Values{"failed": {"true"}, "since": {since}})
}

// lastDay returns the attempts that failed in the last day, or nil if the role may not see them.
func (v *view) lastDay() *pages.ConsoleTable {
	if !v.may("attempt list") {
		return nil
	}
	found, err := admin.AttemptList.Do(v.r.Context(), v.as, admin.AttemptsWanted{
		Failed: true, Since: v.cfg.Now().Add(-day), Limit: maxCounted,
	})
	if err != nil {
		return nil
	}
	t := v.table(table{noun: "attempt", columns: nounOf("attempt").columns}, valueOf(found.Items), nil)
	return &t
}

// attention returns the findings that an administrator should look at first.
func (v *view) attention(failed *pages.ConsoleTable) pages.ConsoleFindings {
	f := pages.ConsoleFindings{Title: "Needs attention", None: "Nothing. All checks passed."}
	if v.may("health show") {
		h, err := admin.HealthShow.Do(v.r.Context(), v.as, admin.None{})
		for _, found := range h.Findings {
			if found.Level == admin.LevelFail || found.Level == admin.LevelWarning {
				one := v.finding(found)
				if one.URL == "" {
					one.URL = v.url("health show", nil)
				}
				f.Findings = append(f.Findings, one)
			}
		}
		if err != nil {
			f.Findings = append(f.Findings, pages.ConsoleFinding{
				Tone: "bad", Mark: "fail", Name: "Health could not be read", URL: v.url("health show", nil),
			})
		}
	}
	f.Findings = append(f.Findings, v.proposals()...)
	if v.may("trust list") {
		entries, err := admin.TrustList.Do(v.r.Context(), v.as, admin.None{})
		for _, e := range entries.Items {
			if err == nil && e.Problem != "" {
				f.Findings = append(f.Findings, pages.ConsoleFinding{
					Tone: "bad", Mark: "trust", Name: e.ID, Text: e.Problem,
					URL: v.url("trust show", url.Values{"id": {e.ID}}),
				})
			}
		}
	}
	if failed != nil && len(failed.Rows) > 0 {
		f.Findings = append(f.Findings, pages.ConsoleFinding{
			Tone: "warn", Mark: "attempts", URL: v.failedURL(),
			Name: counted(len(failed.Rows), "attempt", "attempts") + " failed in the last day",
			Next: "Each one says who can fix it.",
		})
	}
	slices.SortStableFunc(f.Findings, func(a, b pages.ConsoleFinding) int {
		return cmp.Compare(weight(a.Tone != "bad"), weight(b.Tone != "bad"))
	})
	return f
}

// tiles returns the counts of the objects that the role may see.
func (v *view) tiles(failed *pages.ConsoleTable) (tiles []pages.ConsoleTile) {
	ctx := v.r.Context()
	add := func(one, many, note, operation string, n int, more bool, err error) {
		count, name := grouped(n), many
		if more {
			count += "+"
		} else if n == 1 {
			name = one
		}
		if err != nil {
			count = "?"
		}
		tiles = append(tiles, pages.ConsoleTile{Name: name, Count: count, Note: note, URL: v.url(operation, nil)})
	}
	if v.may("user list") {
		found, err := admin.UserList.Do(ctx, v.as, counting)
		disabled := 0
		for _, u := range found.Items {
			if u.Disabled {
				disabled++
			}
		}
		add("user", "users", noteOf(disabled, "disabled"), "user list", len(found.Items), found.Next != "", err)
	}
	if v.may("client list") {
		found, err := admin.ClientList.Do(ctx, v.as, counting)
		add("client", "clients", "", "client list", len(found.Items), found.Next != "", err)
	}
	if v.may("grant list") {
		n, err := admin.GrantCounted.Do(ctx, v.as, admin.Which{})
		add("live grant", "live grants", "", "grant list", n.Grants, n.More, err)
	}
	if failed != nil {
		n := len(failed.Rows)
		add("failed attempt", "failed attempts", "in the last day", "attempt list", n, n >= maxCounted, nil)
		tiles[len(tiles)-1].URL = v.failedURL()
		if n > 0 {
			tiles[len(tiles)-1].Tone = "warn"
		}
	}
	return tiles
}

func noteOf(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s", grouped(n), what)
}
