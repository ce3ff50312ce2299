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

// A task that does not reach its caller is cancelled at the MCP server on a best-effort basis. Each
// attempt has a timeout, and the number of concurrent attempts is bounded.
const (
	cancelTime  = 10 * time.Second
	cancelsMost = 16
)

// cancelID is the id of the gateway's own requests. Clients never see it.
const cancelID = "mcp-authd-cancel"

// cancelTask makes the MCP server end a task that the request out has begun and that its caller
// will not learn about. It does not wait. The cancellation uses the caller's session and identity.
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
		maps.DeleteFunc(r.Header, func(name string, _ []string) bool { // headers with arguments of the call
			return strings.HasPrefix(name, mcp.HeaderParamPrefix)
		})
	}
	resp, err := u.proxy.Transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, bufferSize) // so that the connection can be reused
	if resp.StatusCode >= http.StatusBadRequest {
		return statusError(resp.StatusCode)
	}
	return nil
}

// metaOf returns the client metadata (_meta) of the request that began a task. Revision 2026-07-28
// requires it in each request.
func metaOf(out *http.Request) map[string]json.RawMessage {
	if out.GetBody == nil {
		return nil
	}
	body, err := out.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	raw, err := io.ReadAll(body) // the guard has limited its size
	if err != nil {
		return nil
	}
	all, err := requests(raw)
	if err != nil || len(all) != 1 {
		return nil
	}
	members, err := object(all[0].params.Get("_meta"))
	if err != nil || members == nil {
		return nil
	}
	meta := map[string]json.RawMessage{}
	for _, m := range members {
		if m.Name != "progressToken" { // it belongs to the call
			meta[m.Name] = m.Value
		}
	}
	return meta
}
