package console

import (
	"reflect"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/pages"
)

// client shows a client with its policy and the text of its metadata document.
func (v *view) client(d admin.ClientDetails, p *pages.Console) {
	text := d.LastRead.Text
	d.LastRead.Text = ""
	p.Parts = append(p.Parts, v.parts(nounOf("client show"), members(reflect.ValueOf(d)), nil)...)
	if text != "" {
		p.Parts = append(p.Parts, pages.ConsoleText{
			Title: "The text of its document", Lead: "What its publisher says of the client, in its first 8 KiB.", Text: text,
		})
	}
}
