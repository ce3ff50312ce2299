package pages

import (
	"html/template"
	"text/template/parse"
)

// constant inserts the values that are the same on every page into the templates: the results of
// functions that do not depend on a view. Otherwise each page would call the functions and escape
// the results again. The words come from the administrator, and are escaped for text and
// attributes.
func constant(t *template.Template, words map[string]string) {
	for _, page := range t.Templates() {
		if page.Tree != nil {
			constantIn(page.Tree.Root, words)
		}
	}
}

func constantIn(list *parse.ListNode, words map[string]string) {
	if list == nil {
		return
	}
	for i, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			if word, ok := words[n.Pipe.String()]; ok {
				list.Nodes[i] = &parse.TextNode{
					NodeType: parse.NodeText, Pos: n.Pos, Text: []byte(template.HTMLEscapeString(word)),
				}
			}
		case *parse.IfNode:
			constantIn(n.List, words)
			constantIn(n.ElseList, words)
		case *parse.WithNode:
			constantIn(n.List, words)
			constantIn(n.ElseList, words)
		case *parse.RangeNode:
			constantIn(n.List, words)
			constantIn(n.ElseList, words)
		}
	}
}
