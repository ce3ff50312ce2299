package stdio

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
)

// mirror maps an argument of a tool to the header that repeats it (MCP 2026-07-28, Tools,
// "x-mcp-header").
type mirror struct {
	path   []string
	header string
}

// mirrors caches the mirrors of all tools of a program. They are requested at the first tool call,
// and again after the program reports a change of its tools.
type mirrors struct {
	mu    sync.Mutex // guards the fields below, and allows one request at a time
	tools map[string][]mirror
	asked time.Time
}

const (
	mirrorsFresh = time.Minute
	maxPages     = 50
	listing      = 5 * time.Second
)

func (m *mirrors) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tools = nil
}

func (h *hub) mirrored(ctx context.Context, tool string) []mirror {
	m := &h.mirrors
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tools == nil || h.server.c.Now().Sub(m.asked) > mirrorsFresh {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listing)
		defer cancel()
		m.tools, m.asked = h.listMirrors(ctx), h.server.c.Now()
	}
	return m.tools[tool]
}

// listMirrors requests the program's tools and returns their mirrors. On an error, it returns the
// mirrors found so far.
func (h *hub) listMirrors(ctx context.Context) map[string][]mirror {
	found := map[string][]mirror{}
	params := map[string]any{"_meta": meta()}
	for range maxPages {
		f, err := h.exchange(ctx, "tools/list", params)
		var page struct {
			Tools []struct {
				Name   string          `json:"name"`
				Schema json.RawMessage `json:"inputSchema"`
			} `json:"tools"`
			Next string `json:"nextCursor"`
		}
		if err != nil || json.Unmarshal(f.Result, &page) != nil {
			return found
		}
		for _, t := range page.Tools {
			if bytes.Contains(t.Schema, []byte(`"x-mcp-header"`)) {
				found[t.Name] = annotated(t.Schema, nil)
			}
		}
		if page.Next == "" {
			return found
		}
		params["cursor"] = page.Next
	}
	return found
}

func annotated(schema json.RawMessage, path []string) (out []mirror) {
	for name, property := range members(at(schema, "properties")) {
		here := append(path[:len(path):len(path)], name)
		if header := text(at(property, "x-mcp-header")); header != "" {
			out = append(out, mirror{here, mcp.HeaderParamPrefix + header})
		}
		out = append(out, annotated(property, here)...)
	}
	return out
}

// agree reports whether the headers of a call match its arguments (RS-151). An intermediary reads
// only the headers, so a header without an argument is also an error.
func agree(h http.Header, arguments json.RawMessage, mirrors []mirror) bool {
	for _, m := range mirrors {
		values := h.Values(m.header)
		raw := at(arguments, m.path...)
		if raw == nil || string(raw) == "null" {
			if len(values) > 0 {
				return false
			}
			continue
		}
		if len(values) != 1 || !equal(values[0], raw) {
			return false
		}
	}
	return true
}

const (
	base64Prefix = "=?base64?"
	base64Suffix = "?="
	maxInteger   = 1<<53 - 1 // JSON numbers are exact up to here
)

// equal reports whether a header has the value of a string, integer or boolean in the body.
func equal(header string, raw json.RawMessage) bool {
	if encoded, ok := strings.CutPrefix(header, base64Prefix); ok && strings.HasSuffix(encoded, base64Suffix) {
		b, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSuffix(encoded, base64Suffix)) // RS-149, RS-150
		if err != nil {
			return false
		}
		header = string(b)
	}
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return false
	}
	switch v := value.(type) {
	case string:
		return header == v
	case bool:
		return header == strconv.FormatBool(v)
	case float64:
		n, err := strconv.ParseFloat(header, 64)
		return err == nil && n == v && v == math.Trunc(v) && math.Abs(v) <= maxInteger
	}
	return false
}
