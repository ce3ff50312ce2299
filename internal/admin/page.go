package admin

import (
	"errors"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// MaxPage is the maximum number of items on a page.
const MaxPage = 500

// Paging is the part of an input that selects a page of a list.
type Paging struct {
	After string `json:"after,omitempty" jsonschema:"next from the previous page; empty for the first page"`
	Limit int    `json:"limit,omitempty" jsonschema:"maximum number of items, up to 500; default 100"`
}

// Searched is the part of an input that selects a page of the items whose names contain a text.
type Searched struct {
	Match string `json:"match,omitempty" jsonschema:"only accounts with this text in name, mail address or ID"`
	Paging
}

// maxMatch limits the text of a search, in bytes. maxLooked limits how many rows are scanned for
// one page: a page may be empty while later ones are not.
const (
	maxMatch  = 256
	maxLooked = 20_000
)

// search returns the store query for a page that begins after the given key. It asks for one item
// more than the limit.
func (in Searched) search(after string) (storage.Search, error) {
	if len(in.Match) > maxMatch {
		return storage.Search{}, fault(ErrInvalid, "match must have at most %d bytes", maxMatch)
	}
	return storage.Search{Text: in.Match, After: after, Limit: in.bounded() + 1, Scan: maxLooked}, nil
}

// bounded returns the effective limit.
func (p Paging) bounded() int {
	if p.Limit <= 0 {
		return 100
	}
	return min(p.Limit, MaxPage)
}

// Page is a page of a list.
type Page[T any] struct {
	Items []T `json:"items"`
	// Next is the value of after for the next page, or "" on the last page.
	Next string `json:"next,omitempty" jsonschema:"ask for the next page with this as after; absent on the last page"`
}

// page builds a page from a store's result of up to one item more than the limit.
func page[T, V any](found []T, limit int, view func(T) V, key func(T) string) Page[V] {
	p := Page[V]{Items: make([]V, 0, min(len(found), limit))}
	for i, item := range found {
		if i == limit {
			p.Next = key(found[i-1])
			break
		}
		p.Items = append(p.Items, view(item))
	}
	return p
}

// maxPages limits how many pages a server can make a command read.
const maxPages = 10_000

var errEndless = errors.New("admin: the pages of a list have no end")

// Everything reads a whole list, page by page.
func Everything[T any](next func(Paging) (Page[T], error)) ([]T, error) {
	all := []T{}
	p := Paging{Limit: MaxPage}
	for range maxPages {
		got, err := next(p)
		if err != nil {
			return nil, err
		}
		all = append(all, got.Items...)
		switch got.Next {
		case "":
			return all, nil
		case p.After:
			return nil, errEndless
		}
		p.After = got.Next
	}
	return nil, errEndless
}
