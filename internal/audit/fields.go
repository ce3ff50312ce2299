package audit

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Person returns the id of the acting user's account, and the name if known.
func Person(id, name string) slog.Attr {
	return slog.Group("", slog.String("user", id), slog.String("user_name", name))
}

// Client returns the id and name of the acting client.
func Client(c storage.Client) slog.Attr {
	return slog.Group("", slog.String("client_id", c.ID), slog.String("client_name", c.Name))
}

// Grant returns a grant's id, user and resource, and how it ended.
func Grant(g storage.Grant) slog.Attr {
	attrs := []any{slog.String("grant", g.ID), slog.String("user", g.UserID), slog.String("resource", g.Resource)}
	if !g.RevokedAt.IsZero() {
		attrs = append(attrs, slog.Time("revoked_at", g.RevokedAt), slog.String("revoked_by", string(g.RevokedBy)))
	}
	return slog.Group("", attrs...)
}

// Node returns the place of a sub-agent in its tree.
func Node(n storage.Node) slog.Attr {
	return slog.Group("", slog.String("node", n.ID), slog.String("parent", n.ParentID), slog.String("actor", n.Name),
		slog.Int("depth", n.Depth))
}

// Cut describes the revocation of many grants: which ones, how many, when and by whom.
func Cut(c storage.Cut) slog.Attr {
	return slog.Group("", slog.String("user", c.UserID), slog.String("client_id", c.ClientID),
		slog.String("resource", c.Resource),
		slog.String("connector", c.Connector), slog.Int64("grants", c.Grants),
		slog.Time("revoked_at", c.At), slog.String("revoked_by", string(c.By)))
}

// Duration returns a duration in milliseconds, as duration_ms.
func Duration(d time.Duration) slog.Attr { return Milliseconds("duration", d) }

// Milliseconds returns a duration under name_ms, because a JSON number has no unit.
func Milliseconds(name string, d time.Duration) slog.Attr {
	return slog.Float64(name+"_ms", float64(d.Round(time.Microsecond))/float64(time.Millisecond))
}

// Remote returns the address that a request came from, without its port.
func Remote(addr string) slog.Attr {
	if ap, err := netip.ParseAddrPort(addr); err == nil {
		addr = ap.Addr().Unmap().String()
	}
	return slog.String("remote", addr)
}

// Application describes an act on all connections of a user's application to an MCP server, with
// their number. The event names one of them.
func Application(a storage.Application) slog.Attr {
	return slog.Group("", slog.String("application", a.Key), slog.Int("connections", a.Connections))
}

// Pause describes the pause of an application.
func Pause(p storage.Pause) slog.Attr {
	return slog.Group("", slog.String("pause", p.ID), slog.String("user", p.UserID),
		slog.String("resource", p.Resource), slog.String("application", p.Application),
		slog.String("client_id", p.ClientID), slog.String("client_name", p.ClientName), slog.Time("paused_at", p.At))
}
