package console

import (
	"net/http"

	"github.com/mcp-authd/mcp-authd/web"
)

// overview is the first page: where everything is.
func (v *view) overview() {
	p := web.Console{Title: "Overview", Overview: true, Lead: "This authorization server, as your role sees it."}
	rooms := v.rooms("")
	for _, room := range rooms {
		cards := web.ConsoleCards{Title: room.Name}
		for _, link := range room.Links {
			for _, n := range nouns {
				if n.title == link.Name {
					cards.Cards = append(cards.Cards, web.ConsoleCard{Name: n.title, URL: link.URL, Text: n.lead})
				}
			}
		}
		p.Parts = append(p.Parts, cards)
	}
	v.page(http.StatusOK, "", p)
}
