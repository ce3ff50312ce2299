package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeissuer"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
)

// TestTrustRemovedFromTheConfiguration: AS-232. Grants depend on the trusted issuer. If the
// configuration no longer has it, or has another issuer in its entry, these grants end at the next
// start of a server. They do not return with the entry.
func TestTrustRemovedFromTheConfiguration(t *testing.T) {
	const (
		ci      = "- {id: ci, preset: github-actions, parameters: {repository: o/r, ref: refs/heads/main}, jwks_file: DIR/github}\n"
		company = "- {id: company, kind: enterprise, issuer: \"https://id.acme.example\", jwks_file: DIR/company, create_people: true}\n"
		another = "- {id: company, kind: enterprise, issuer: \"https://id.other.example\", jwks_file: DIR/other, create_people: true}\n"
		pods    = "- {id: pods, preset: kubernetes, issuer: \"https://cluster.example\", jwks_file: DIR/pods,\n" +
			"   parameters: {namespace: prod, service_account: bot}}\n"
	)
	issuers := map[string]*fakeissuer.Issuer{
		"github":  fakeissuer.New(t, "https://token.actions.githubusercontent.com", "g", time.Now),
		"company": fakeissuer.New(t, "https://id.acme.example", "c", time.Now),
		"other":   fakeissuer.New(t, "https://id.other.example", "o", time.Now),
		"pods":    fakeissuer.New(t, "https://cluster.example", "p", time.Now),
	}
	x := newTrusting(t, "trust:\n"+ci+company+pods, "", []string{nettest.For(t)}, issuers)
	restart := func(entries string) {
		t.Helper()
		x.replicas[0].stop()
		b, err := os.ReadFile(x.config)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(b), "trust:\n")
		x.write("mcp-authd.yaml", head+"trust:\n"+strings.ReplaceAll(entries, "DIR", x.dir))
		x.replicas[0].start(t, x.config)
	}
	job := func() string {
		return issuers["github"].Sign("JWT", issuers["github"].GitHub(x.issuer, "o/r", "refs/heads/main"))
	}
	jag := func(of string) string {
		return issuers[of].Sign(fakeissuer.IDJAG, issuers[of].Auth0(x.issuer, "agent", "ada", x.resource))
	}
	ofJob, ofPerson := x.token(x.asJob(job())), x.token(x.asAgent(jag("company")))
	pod := issuers["pods"].Sign("", issuers["pods"].Kubernetes(x.issuer, "prod", "bot"))
	ofPod := x.token(x.asJob(pod))
	unused := x.asJob(job())

	restart(another + pods)
	nextSecond(t)
	t.Run("AS-232 an entry that is gone", func(t *testing.T) {
		x := x.of(t)
		x.ends(ofJob)
		x.wantRefused(x.asJob(job()))
	})
	t.Run("AS-232 an entry with another issuer", func(t *testing.T) {
		x := x.of(t)
		x.ends(ofPerson)
		x.wantRefused(x.asAgent(jag("company")))
		x.token(x.asAgent(jag("other")))
	})
	t.Run("AS-232 an entry that stays", func(t *testing.T) {
		if got := x.call(ofPod); got != 200 {
			t.Errorf("the guard answers %d", got)
		}
	})
	restart(ci + company + pods) // company has another issuer again, and its grants end again
	nextSecond(t)
	t.Run("AS-232 an entry that comes back starts with nothing", func(t *testing.T) {
		x := x.of(t)
		x.wantRefused(unused)
		x.token(x.asJob(job()))
		x.token(x.asAgent(jag("company")))
		for name, token := range map[string]string{"the job": ofJob, "the person": ofPerson} {
			if got := x.call(token); got != 401 {
				t.Errorf("for %s's earlier token the guard answers %d", name, got)
			}
		}
	})
}
