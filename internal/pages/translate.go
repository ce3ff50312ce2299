package pages

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"

	"github.com/mcp-authd/mcp-authd/internal/text"
)

// translator inserts the texts of one language into templates: it replaces {{t "page.name" ...}}
// and {{n "page.name" count ...}} with words and values. A page then costs as much as if it had
// been written in this language.
type translator struct {
	language *text.Language
	used     map[string]bool // keys used by templates
}

// markup lists functions that return an element. Other values get a <bdi>.
var markup = []string{"strong", "code", "host", "date", "day"}

// place is the position of a template node in the page.
type place struct {
	title bool // in the page's title, which must not contain elements
	inTag bool // in an attribute value
}

func (tr *translator) translate(t *template.Template) error {
	for _, part := range t.Templates() {
		if part.Tree == nil {
			continue
		}
		at := place{title: part.Name() == "title"}
		if err := tr.list(part.Tree.Root, &at); err != nil {
			return fmt.Errorf("pages: template %s in %s: %w", part.Name(), tr.language.Tag, err)
		}
	}
	return nil
}

func (tr *translator) list(list *parse.ListNode, at *place) error {
	if list == nil {
		return nil
	}
	var out []parse.Node
	for _, n := range list.Nodes {
		replaced, err := tr.node(n, at)
		if err != nil {
			return err
		}
		out = append(out, replaced...)
	}
	list.Nodes = out
	return nil
}

func (tr *translator) node(n parse.Node, at *place) ([]parse.Node, error) {
	var err error
	switch n := n.(type) {
	case *parse.TextNode:
		if i := strings.LastIndexAny(string(n.Text), "<>"); i >= 0 {
			at.inTag = n.Text[i] == '<'
		}
	case *parse.ActionNode:
		if name := called(n.Pipe); name == "t" || name == "n" {
			return tr.call(n, name == "n", *at)
		}
		err = noText(n.Pipe)
	case *parse.TemplateNode:
		err = noText(n.Pipe)
	case *parse.IfNode:
		err = tr.branch(&n.BranchNode, at)
	case *parse.WithNode:
		err = tr.branch(&n.BranchNode, at)
	case *parse.RangeNode:
		err = tr.branch(&n.BranchNode, at)
	}
	return []parse.Node{n}, err
}

func (tr *translator) branch(n *parse.BranchNode, at *place) error {
	if err := noText(n.Pipe); err != nil {
		return err
	}
	before := *at
	if err := tr.list(n.List, at); err != nil {
		return err
	}
	at = &before
	return tr.list(n.ElseList, at)
}

// call returns the nodes that replace one call of t or n.
func (tr *translator) call(n *parse.ActionNode, counted bool, at place) ([]parse.Node, error) {
	args := n.Pipe.Cmds[0].Args[1:]
	if len(n.Pipe.Cmds) != 1 || len(n.Pipe.Decl) != 0 || len(args) == 0 {
		return nil, fmt.Errorf("%s: t and n stand alone and begin with the key of a text", n)
	}
	key, ok := args[0].(*parse.StringNode)
	if !ok {
		return nil, fmt.Errorf("%s: the key of a text must be a word in quotation marks", n)
	}
	entry, ok := tr.language.Entry(key.Text)
	if !ok || entry.Counted != counted {
		return nil, fmt.Errorf("%s: there is no such text, or not with plural forms", n)
	}
	tr.used[key.Text] = true
	args = args[1:]
	values := map[string]parse.Node{}
	if counted {
		if len(args) == 0 {
			return nil, fmt.Errorf("%s: the number is missing", n)
		}
		values[text.Number], args = args[0], args[1:]
	}
	if err := named(values, args); err != nil {
		return nil, fmt.Errorf("%s: %w", n, err)
	}
	if err := sameNames(entry, values); err != nil {
		return nil, fmt.Errorf("%s: %w", n, err)
	}
	return tr.forms(entry, values, at), nil
}

// named adds the name and value pairs.
func named(values map[string]parse.Node, args []parse.Node) error {
	if len(args)%2 != 0 {
		return fmt.Errorf("each value must have a name before it")
	}
	for pair := range slices.Chunk(args, 2) {
		name, ok := pair[0].(*parse.StringNode)
		if !ok {
			return fmt.Errorf("%s must be the name of a value", pair[0])
		}
		values[name.Text] = pair[1]
	}
	return nil
}

func sameNames(entry text.Entry, values map[string]parse.Node) error {
	want := entry.Values()
	for _, name := range want {
		if values[name] == nil {
			return fmt.Errorf("the value %s is missing", name)
		}
	}
	for name := range values {
		if name != text.Number && !slices.Contains(want, name) {
			return fmt.Errorf("the text has no {%s}", name)
		}
	}
	return nil
}

// forms returns the pieces of a text, with conditions for its plural forms.
func (tr *translator) forms(entry text.Entry, values map[string]parse.Node, at place) []parse.Node {
	out := pieces(entry.Forms[text.Other], values, at)
	for form, words := range entry.Forms {
		if form == text.Other {
			continue
		}
		out = []parse.Node{&parse.IfNode{BranchNode: parse.BranchNode{
			NodeType: parse.NodeIf,
			Pipe:     pipe(parse.NewIdentifier("plural"), quoted(form), values[text.Number].Copy()),
			List:     &parse.ListNode{NodeType: parse.NodeList, Nodes: pieces(words, values, at)},
			ElseList: &parse.ListNode{NodeType: parse.NodeList, Nodes: out},
		}}}
	}
	return out
}

func pieces(words []text.Piece, values map[string]parse.Node, at place) (out []parse.Node) {
	for _, p := range words {
		if p.Value == "" {
			out = append(out, literal(template.HTMLEscapeString(p.Words)))
			continue
		}
		value := &parse.ActionNode{NodeType: parse.NodeAction, Pipe: pipeOf(values[p.Value].Copy())}
		if at.title || at.inTag || p.Value == text.Number || slices.Contains(markup, called(value.Pipe)) {
			out = append(out, value)
		} else {
			out = append(out, literal("<bdi>"), value, literal("</bdi>"))
		}
	}
	return out
}

func literal(s string) *parse.TextNode {
	return &parse.TextNode{NodeType: parse.NodeText, Text: []byte(s)}
}

func quoted(s string) *parse.StringNode {
	return &parse.StringNode{NodeType: parse.NodeString, Quoted: strconv.Quote(s), Text: s}
}

func pipe(args ...parse.Node) *parse.PipeNode {
	return &parse.PipeNode{
		NodeType: parse.NodePipe,
		Cmds:     []*parse.CommandNode{{NodeType: parse.NodeCommand, Args: args}},
	}
}

// pipeOf returns a pipeline for an argument, which may be parenthesized.
func pipeOf(n parse.Node) *parse.PipeNode {
	if p, ok := n.(*parse.PipeNode); ok {
		return p
	}
	return pipe(n)
}

// called returns the name of the last function in a pipeline, or "".
func called(p *parse.PipeNode) string {
	if p == nil {
		return ""
	}
	last := p.Cmds[len(p.Cmds)-1]
	if id, ok := last.Args[0].(*parse.IdentifierNode); ok {
		return id.Ident
	}
	return ""
}

// noText refuses t and n if they are not used alone.
func noText(p *parse.PipeNode) error {
	if p == nil {
		return nil
	}
	for _, c := range p.Cmds {
		for _, arg := range c.Args {
			switch arg := arg.(type) {
			case *parse.IdentifierNode:
				if arg.Ident == "t" || arg.Ident == "n" {
					return fmt.Errorf("%s: t and n stand alone", p)
				}
			case *parse.PipeNode:
				if err := noText(arg); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
