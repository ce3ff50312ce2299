package stdio

import (
	"context"
	"time"
)

// attend adds a listener, unless the program has ended.
func (h *hub) attend(l *listener) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		return false
	}
	h.listeners[l] = true
	return true
}

// dismiss removes a listener, and the program's subscriptions that were its alone.
func (h *hub) dismiss(l *listener) {
	h.mu.Lock()
	delete(h.listeners, l)
	gone := h.gone
	h.mu.Unlock()
	for uri := range l.uris {
		if !gone && !h.subscribed(uri) {
			h.subscribe(context.Background(), "resources/unsubscribe", uri)
		}
	}
}

// subscribed reports whether anybody wants to hear of a resource.
func (h *hub) subscribed(uri string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		if l.uris[uri] {
			return true
		}
	}
	for x := range h.sessions {
		x.mu.Lock()
		wants := x.subscribed[uri]
		x.mu.Unlock()
		if wants {
			return true
		}
	}
	return false
}

const subscribing = 5 * time.Second

// subscribe subscribes, or the contrary, in the gateway's name. A program that refuses
// will send nothing, which is all that a listener can be told.
func (h *hub) subscribe(ctx context.Context, method, uri string) {
	ctx, cancel := context.WithTimeout(ctx, subscribing)
	defer cancel()
	if _, err := h.exchange(ctx, method, map[string]string{"uri": uri}); err != nil {
		h.server.c.Logger.Debug("not subscribed", "method", method, "error", err)
	}
}
