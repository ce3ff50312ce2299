package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
)

// TestAuditWrong checks that a wrong log is distinguished from an unreadable database (OB-04).
func TestAuditWrong(t *testing.T) {
	for _, c := range []struct {
		err      error
		says, no string
	}{
		{
			fmt.Errorf("%w: the disk is slow", auditlog.ErrUnchecked),
			"was not checked to its end: the disk is slow; that says nothing about its entries", "not whole",
		},
		{
			&verify.Wrong{First: 5, Last: 5, Why: "it was removed"},
			"not whole: entry 5: it was removed; keep a copy of the database", "not checked",
		},
		{errors.New("the kept checkpoint: it is too long"), "not whole: the kept checkpoint", "not checked"},
	} {
		if got := auditWrong(c.err).Error(); !strings.Contains(got, c.says) || strings.Contains(got, c.no) {
			t.Errorf("got %q, want ...%s", got, c.says)
		}
	}
}

// TestUnprovenExport checks that an export reports entries that are not proven (EN-09). It must
// fail only for entries that no server has written, not for unsigned ones.
func TestUnprovenExport(t *testing.T) {
	for _, c := range []struct {
		why   string
		fails bool
	}{
		{auditlog.UnprovenUnsigned, false}, {auditlog.UnprovenOld, false}, {auditlog.UnprovenUnopened, false},
		{auditlog.UnprovenChanged, true}, {auditlog.UnprovenNoMAC, true}, {auditlog.UnprovenLog, true},
	} {
		var told strings.Builder
		var marks unproven
		marks.count("")
		marks.count(c.why)
		marks.count(c.why)
		err := marks.tell(std{err: &told})
		if (err != nil) != c.fails || !strings.Contains(told.String(), "2 entries: "+c.why) {
			t.Errorf("%s: got %v, %q", c.why, err, &told)
		}
	}
}
