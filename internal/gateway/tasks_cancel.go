package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
)

// A task that is not handed to its caller is cancelled at the MCP server, best effort: each with a time, and so many
// at once.
const (
	cancelTime  = 10 * time.Second
	cancelsMost = 16
)

// cancelID is the id of our requests, which no client learns of.
const cancelID = "mcp-authd-cancel"

// cancelTask has the MCP server end a task that the request out has begun there, and that the caller is not told of. It
// does not wait for that. The request is the caller's: in their session, with their identity.
func (u *Upstream) cancelTask(out *http.Request, id string) {
	select {
	case u.cancels <- struct{}{}:
	default:
		u.c.Logger.WarnContext(out.Context(), "too many tasks are being cancelled: this one goes on at the MCP server",
			"resource", u.c.Resource)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(out.Context()), cancelTime)
	go func() {
		defer func() { <-u.cancels }()
		defer cancel()
		if err := u.sendCancel(ctx, out, id); err != nil {
			u.c.Logger.WarnContext(ctx, "a task that its caller does not get could not be cancelled at the MCP server",
				"resource", u.c.Resource, "error", err)
		}
	}()
}

func (u *Upstream) sendCancel(ctx context.Context, out *http.Request, id string) error {
	params := map[string]any{"taskId": id}
	if meta := metaOf(out); meta != nil {
		params["_meta"] = meta
	}
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": cancelID, "method": "tasks/cancel", "params": params,
	})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, out.URL.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Host, r.Header = out.Host, out.Header.Clone()
	delete(r.Header, "Last-Event-Id")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if mcp.IsStateless(r.Header.Get(mcp.HeaderVersion)) {
		r.Header.Set(mcp.HeaderMethod, "tasks/cancel")
		r.Header.Set(mcp.HeaderName, encodeName(id))
		maps.DeleteFunc(r.Header, func(name string, _ []string) bool { // arguments of the call
			return strings.HasPrefix(name, mcp.HeaderParamPrefix)
		})
	}
	resp, err := u.proxy.Transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, bufferSize) // so that the connection can be used again
	if resp.StatusCode >= http.StatusBadRequest {
		return statusError(resp.StatusCode)
	}
	return nil
}

// metaOf is what the request that began a task says of its client, as each one of 2026-07-28 does.
func metaOf(out *http.Request) map[string]json.RawMessage {
	if out.GetBody == nil {
		return nil
	}
	body, err := out.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	raw, err := io.ReadAll(body) // the guard has bounded it
	if err != nil {
		return nil
	}
	all, err := requests(raw)
	if err != nil || len(all) != 1 {
		return nil
	}
	meta, err := object(all[0].params["_meta"])
	if err != nil {
		return nil
	}
	delete(meta, "progressToken") // of the call
	return meta
}
