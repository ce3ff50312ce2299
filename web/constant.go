package web

import (
	"html/template"
	"text/template/parse"
)

// constant puts the words that are the same on every page of a server, what functions without
// a view return, into the templates: each of them would be looked up, called and escaped for
// each page. The words are the operator's, and are escaped as text and as attributes are.
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
