package admin

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/growth"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

const (
	// fullSoon is how many days before its disk is full an installation gets a warning.
	fullSoon = 30
	// scarce is how little space may be left before a warning, however slowly the database grows.
	scarce = 256 << 20
)

// SizeFindings reports the size of the database, its growth, and when its disk is full at this rate (OP-02).
func (s *Service) SizeFindings(ctx context.Context) (f findings, _ error) {
	g, err := growth.Look(ctx, s.Store, s.Now())
	if err != nil {
		return nil, err
	}
	what := "the database has " + label.Bytes(g.Used)
	switch {
	case g.Days == 0:
		what += "; how fast it grows is known a day after the first start"
	case g.PerDay <= 0:
		what += " and does not grow"
	default:
		what += " and grows by " + label.Bytes(g.PerDay) + " a day"
	}
	level, advice := LevelOK, ""
	if g.Free >= 0 {
		what += "; its disk has " + label.Bytes(g.Free) + " left"
	}
	full, known := g.Full()
	if known {
		what += ", which is enough for " + label.Count(int(full), "day", "days")
	}
	if g.Free >= 0 && g.Free < scarce || known && full < fullSoon {
		level, advice = LevelWarning, "make room on the disk, or keep the audit log for a shorter time (audit.keep)"
	}
	f.add("growth", level, advice, "%s", what)
	return f, nil
}
