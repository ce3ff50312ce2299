package audit

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Person is who acts: the id of the account, and its name where it is known.
func Person(id, name string) slog.Attr {
	return slog.Group("", slog.String("user", id), slog.String("user_name", name))
}

// Client is the application that acts.
func Client(c storage.Client) slog.Attr {
	return slog.Group("", slog.String("client_id", c.ID), slog.String("client_name", c.Name))
}

// Grant is what a token rests on, with whose it is and how it ended.
func Grant(g storage.Grant) slog.Attr {
	attrs := []any{slog.String("grant", g.ID), slog.String("user", g.UserID), slog.String("resource", g.Resource)}
	if !g.RevokedAt.IsZero() {
		attrs = append(attrs, slog.Time("revoked_at", g.RevokedAt), slog.String("revoked_by", string(g.RevokedBy)))
	}
	return slog.Group("", attrs...)
}

// Node is what a helper has.
func Node(n storage.Node) slog.Attr {
	return slog.Group("", slog.String("node", n.ID), slog.String("parent", n.ParentID), slog.String("actor", n.Name),
		slog.Int("depth", n.Depth))
}

// Cut is what many grants were ended by, and how many they are.
func Cut(c storage.Cut) slog.Attr {
	return slog.Group("", slog.String("user", c.UserID), slog.String("client_id", c.ClientID),
		slog.String("resource", c.Resource),
		slog.String("connector", c.Connector), slog.Int64("grants", c.Grants),
		slog.Time("revoked_at", c.At), slog.String("revoked_by", string(c.By)))
}

// Duration is how long something took.
func Duration(d time.Duration) slog.Attr { return Milliseconds("duration", d) }

// Milliseconds is a duration as all of them are logged: its name says the unit, which a number
// of JSON does not.
func Milliseconds(name string, d time.Duration) slog.Attr {
	return slog.Float64(name+"_ms", float64(d.Round(time.Microsecond))/float64(time.Millisecond))
}

// Remote is the address that a request came from, without its port.
func Remote(addr string) slog.Attr {
	if ap, err := netip.ParseAddrPort(addr); err == nil {
		addr = ap.Addr().Unmap().String()
	}
	return slog.String("remote", addr)
}

// Application is what an act was done to that holds for all connections of an application of a person at an MCP
// server, and how many of them there were. The event names one of them.
func Application(a storage.Application) slog.Attr {
	return slog.Group("", slog.String("application", a.Key), slog.Int("connections", a.Connections))
}

// Pause is the pause of an application.
func Pause(p storage.Pause) slog.Attr {
	return slog.Group("", slog.String("pause", p.ID), slog.String("user", p.UserID),
		slog.String("resource", p.Resource), slog.String("application", p.Application),
		slog.String("client_id", p.ClientID), slog.String("client_name", p.ClientName), slog.Time("paused_at", p.At))
}
