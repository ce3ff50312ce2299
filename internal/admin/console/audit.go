package console

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/pages"
)

// proofPage is the page that sends the output of "audit prove --json".
const proofPage = "audit proof"

// entry shows one entry of the audit log with all its fields.
func (v *view) entry(e admin.AuditEntry, p *pages.Console) {
	p.Title = "Entry " + strconv.FormatInt(e.Index, 10)
	p.Badges = []pages.ConsoleBadge{{Text: e.Event}}
	facts := pages.ConsoleFacts{Facts: []pages.ConsoleFact{
		{Name: "When", Value: pages.ConsoleCell{At: e.At, Text: exactly(e.At, v.cfg.Now())}},
		{Name: "Event", Value: pages.ConsoleCell{Text: e.Event, Code: true}},
	}}
	facts.Facts = append(facts.Facts, v.said(e)...)
	facts.Facts = append(facts.Facts, pages.ConsoleFact{
		Name: "Leaf", Value: pages.ConsoleCell{Text: e.Leaf.String(), Code: true},
	})
	p.Parts = append(p.Parts, facts)
}

// said returns the fields of an entry as logged. They include text that clients and users chose.
func (v *view) said(e admin.AuditEntry) (facts []pages.ConsoleFact) {
	for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
		c := pages.ConsoleCell{Text: e.Fields[name], Code: true}
		if now := e.NameOf(name); now != "" {
			c.Note = named(now, "")
		}
		v.link(name, &c)
		if name == "user_name" {
			personLink(v, nil, &c)
		}
		facts = append(facts, pages.ConsoleFact{Name: name, Value: c})
	}
	return facts
}

// proof shows the chain that permitted an action, from the consent to the call, with the proof that
// each entry is in the log.
func (v *view) proof(proof admin.AuditProof, p *pages.Console) {
	p.Lead = "Each entry is in the log that the checkpoint below has signed."
	chain := pages.ConsoleSteps{Title: "What allowed it"}
	hashes := map[int64]int{}
	for _, e := range proof.Entries {
		hashes[e.Index] = len(e.Proof)
	}
	for i, e := range proof.Chain {
		last := i == len(proof.Chain)-1
		step := pages.ConsoleStep{
			ID: fmt.Sprintf("entry-%d", e.Index), Name: e.Event, At: e.At, After: exactly(e.At, v.cfg.Now()),
			Badges: []pages.ConsoleBadge{{Text: "in the log", Tone: "good"}},
			Text:   fmt.Sprintf("entry %d, leaf %s", e.Index, shortened(e.Leaf.String())),
			Detail: "What it says",
			Facts:  v.said(e),
		}
		step.Facts = append(step.Facts, pages.ConsoleFact{Name: "Proof", Value: pages.ConsoleCell{
			Text: counted(hashes[e.Index], "hash", "hashes") + " beside the way from its leaf to the root",
		}})
		if last {
			p.Title = fmt.Sprintf("Proof of entry %d", e.Index)
			p.Acts = []pages.ConsoleLink{{
				Name: "Proof (JSON)", URL: v.url(proofPage, url.Values{"index": {strconv.FormatInt(e.Index, 10)}}),
			}}
		}
		chain.Steps = append(chain.Steps, step)
	}
	p.Parts = append(p.Parts, chain, pages.ConsoleText{
		Title: "Checkpoint", Lead: "How far the log had come, signed.", Text: proof.Checkpoint,
	}, pages.ConsoleText{
		Title: "Key of the log",
		Lead:  "Compare it with the one that you have kept. With it, examples/auditverify checks the JSON by itself.",
		Text:  proof.Key,
	})
}

// checkpoint shows the signed size of the log.
func (v *view) checkpoint(c admin.AuditCheckpoint, p *pages.Console) {
	p.Title = "Checkpoint"
	p.Parts = append(p.Parts, pages.ConsoleFacts{Facts: []pages.ConsoleFact{
		{Name: "Entries", Value: pages.ConsoleCell{Text: grouped(int(c.Size))}},
		{Name: "When", Value: pages.ConsoleCell{At: c.At, Text: exactly(c.At, v.cfg.Now())}},
	}}, pages.ConsoleText{Title: "Signed", Text: c.Checkpoint}, pages.ConsoleText{Title: "Key of the log", Text: c.Key})
}

// proofFile sends a proof as a document that can be verified with the log's public key alone.
func (v *view) proofFile() {
	in := admin.AuditIndex{Index: -1}
	if n, err := strconv.ParseInt(v.r.URL.Query().Get("index"), 10, 64); err == nil {
		in.Index = n
	}
	proof, err := admin.AuditProve.Do(v.r.Context(), v.as, in)
	if err != nil {
		v.failed(err)
		return
	}
	v.sendJSON(fmt.Sprintf("proof-%d.json", in.Index), proof.Proof)
}
