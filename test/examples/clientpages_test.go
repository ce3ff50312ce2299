package examples

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// recorded is a client of test/zoo with its known requests.
type recorded struct {
	Name         string   `json:"name"`
	Version      string   `json:"version"`
	Executed     bool     `json:"executed"`
	Confidence   string   `json:"confidence"`
	Modes        []string `json:"modes"`
	RedirectURI  string   `json:"redirect_uri"`
	Registration *struct {
		ClientName   string   `json:"client_name"`
		RedirectURIs []string `json:"redirect_uris"`
	} `json:"dcr_body"`
}

var (
	ofZoo     = regexp.MustCompile(`(?m)^<!-- zoo: ([a-z0-9 -]+) -->$`)
	onlyRead  = regexp.MustCompile(`(?m)^<!-- read: (\S+) -->$`)
	inCode    = regexp.MustCompile("`([^`\n]+)`")
	callback  = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://\S*(callback|redirect|127\.0\.0\.1)\S*$`)
	anyPort   = regexp.MustCompile(`^(http://(?:127\.0\.0\.1|localhost)):\d+/`)
	connector = regexp.MustCompile(`(/connector/oauth/)\w+$`)
)

// clientSections lists the sections of a page about a client, in order.
var clientSections = []string{
	"Add a server", "What a person sees", "How it registers", "Refresh", "Known faults", "What was run",
}

// TestClientPages: DL-05. A page about a client agrees with test/zoo: the client's redirect URIs,
// the name that users see, and the tested version. Each page describes its tests, and has the date
// when the rest was read.
func TestClientPages(t *testing.T) {
	zoo := readZoo(t)
	pages := manual(t)
	faults := faultsOfClients(t)
	found := 0
	for path, text := range pages {
		name, ok := strings.CutPrefix(path, "docs/clients/")
		if !ok {
			continue
		}
		found++
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(pages["docs/clients.md"], "(clients/"+name+")") {
				t.Errorf("docs/clients.md does not lead to it")
			}
			sections, titles := sectionsOf(text)
			if !slices.Equal(titles, clientSections) {
				t.Errorf("its sections are %q, want %q", titles, clientSections)
			}
			m := ofZoo.FindStringSubmatch(text)
			if m == nil {
				t.Fatal("it does not say of which clients of test/zoo it is")
			}
			words := strings.Join(strings.Fields(text), " ")
			sends := map[string]bool{}
			for _, m := range onlyRead.FindAllStringSubmatch(text, -1) {
				sends[m[1]] = true
			}
			for _, id := range strings.Fields(m[1]) {
				r := zoo[id]
				if len(r) == 0 {
					t.Fatalf("test/zoo has no %s", id)
				}
				for _, r := range r {
					sends[typical(r.RedirectURI)] = true
					if r.Registration != nil && r.Confidence != "low" {
						for _, uri := range r.Registration.RedirectURIs {
							sends[typical(uri)] = true
						}
						shown, _, _ := strings.Cut(r.Registration.ClientName, " (")
						if !strings.Contains(words, "*"+shown) {
							t.Errorf("people see the name %q, which it does not have", shown)
						}
					}
					version := r.Version[strings.LastIndex(r.Version, " ")+1:]
					if r.Executed && !strings.Contains(sections["What was run"], version) {
						t.Errorf("%s was run in version %s, which it does not say", id, r.Version)
					}
				}
			}
			for _, m := range inCode.FindAllStringSubmatch(sections["How it registers"], -1) {
				if callback.MatchString(m[1]) && !sends[typical(m[1])] {
					t.Errorf("test/zoo knows of no redirect URI %s", m[1])
				}
			}
			run := sections["What was run"]
			if !regexp.MustCompile(`20\d\d-\d\d-\d\d|by the tests, each time`).MatchString(run) {
				t.Error("it does not say when it was read")
			}
			for fault, clients := range faults {
				for _, c := range clients {
					title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
					if strings.HasPrefix(title, c) && !strings.Contains(sections["Known faults"], "`"+fault+"`") {
						t.Errorf("internal/attempt/clients.json knows of %s, which it does not have", fault)
					}
				}
			}
		})
	}
	if found < 12 {
		t.Errorf("%d pages about clients", found)
	}
}

// typical returns a redirect URI without the parts that differ between installations.
func typical(uri string) string {
	same := strings.NewReplacer("https://chat.example/", "https://chat.example.com/", "/mcp/dummy/", "/mcp/notes/")
	uri = same.Replace(uri)
	return anyPort.ReplaceAllString(connector.ReplaceAllString(uri, "${1}ID"), "$1:*/")
}

func readZoo(t *testing.T) map[string][]recorded {
	t.Helper()
	var all []recorded
	readJSON(t, "test/zoo/testdata/clients.json", &all)
	zoo := map[string][]recorded{}
	for _, r := range all {
		zoo[r.Name] = append(zoo[r.Name], r)
	}
	return zoo
}

// faultsOfClients returns the known faults, each with the first words of its clients' names.
func faultsOfClients(t *testing.T) map[string][]string {
	t.Helper()
	var all []struct{ Client, Fault string }
	readJSON(t, "internal/attempt/clients.json", &all)
	faults := map[string][]string{}
	for _, f := range all {
		client, _, _ := strings.Cut(f.Client, ",")
		client, _, _ = strings.Cut(client, ".")
		faults[f.Fault] = append(faults[f.Fault], client)
	}
	return faults
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// sectionsOf returns the sections of a page, by their titles.
func sectionsOf(text string) (sections map[string]string, titles []string) {
	sections = map[string]string{}
	for i, part := range strings.Split(text, "\n## ") {
		if i > 0 {
			title, rest, _ := strings.Cut(part, "\n")
			sections[title] = rest
			titles = append(titles, title)
		}
	}
	return sections, titles
}
