package scoperule

import (
	"slices"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestWholeRules(t *testing.T) {
	const here, there = "https://mcp.example.com", "https://other.example.com"
	read, write := oauth.Scopes{"notes"}, oauth.Scopes{"notes", "notes:write"}
	rules := []Rule{
		{Resource: here, Rank: Person, Whole: true, Scopes: read}, // for Bob
		{Resource: here, Rank: Group, Whole: true, Scopes: read},  // for readers
		{Resource: here, Rank: Group, Whole: true, All: true},     // for editors
		{Resource: here, Rank: Everyone, Whole: true},             // nothing
		{Resource: there, Rank: Person, Whole: true},              // nothing for Bob
	}
	const bob, readers, editors, everyone, away = 0, 1, 2, 3, 4
	for _, tt := range []struct {
		name     string
		rules    []int // existing rules
		holding  []int
		resource string
		want     oauth.Scopes
		by       []int // rules that withhold the rest
	}{
		{"no rule: open", nil, nil, here, write, nil},
		{"the rule of a person", []int{bob}, []int{bob}, here, read, []int{bob}},
		{"the rule of another person closes nothing", []int{bob}, nil, here, write, nil},
		{"elsewhere", []int{bob}, []int{bob}, there, write, nil},
		{"a group", []int{readers}, []int{readers}, here, read, []int{readers}},
		{"not in the group", []int{readers}, nil, here, nil, []int{readers}},
		{"in two groups: what either gives", []int{readers, editors}, []int{readers, editors}, here, write, nil},
		{"in two groups, the other way round", []int{editors, readers}, []int{editors, readers}, here, write, nil},
		{"the person goes before the group", []int{editors, bob}, []int{editors, bob}, here, read, []int{bob}},
		{"groups go before everyone", []int{everyone, readers}, []int{everyone, readers}, here, read, []int{readers}},
		{"in no group: as everyone", []int{everyone, editors}, []int{everyone}, here, nil, []int{everyone}},
		{"the person goes before everyone", []int{everyone, bob}, []int{everyone, bob}, here, read, []int{bob}},
		{"nothing", []int{away}, []int{away}, there, nil, []int{away}},
	} {
		t.Run("RU-19 "+tt.name, func(t *testing.T) {
			var list []Rule
			var holds []bool
			for _, i := range tt.rules {
				list, holds = append(list, rules[i]), append(holds, slices.Contains(tt.holding, i))
			}
			got, by := Permitted(list, holds, tt.resource, write)
			var blamed []int // indexes in rules
			for _, i := range by {
				blamed = append(blamed, tt.rules[i])
			}
			if !slices.Equal(got, tt.want) || !slices.Equal(blamed, tt.by) {
				t.Errorf("got %q because of %v, want %q because of %v", got, blamed, tt.want, tt.by)
			}
		})
	}
}

// TestSettled checks Settled against Decide with all sets of further groups (RU-19).
func TestSettled(t *testing.T) {
	const here = "https://mcp.example.com"
	var kinds []Rule
	for _, rank := range []Rank{Person, Group, Everyone} {
		kinds = append(kinds, Rule{Resource: here, Rank: rank, Whole: true, Scopes: oauth.Scopes{"notes"}},
			Rule{Resource: here, Rank: rank, Whole: true})
	}
	const n = 4 // rules, each of any kind
	seen := map[bool]int{}
	for set := range 6 * 6 * 6 * 6 {
		var rules []Rule
		for i, rest := 0, set; i < n; i, rest = i+1, rest/6 {
			rules = append(rules, kinds[rest%6])
		}
		for mask := range 1 << n {
			holds := make([]bool, n)
			for i := range holds {
				holds[i] = mask>>i&1 == 1
			}
			allowed, _ := Decide(rules, holds, here, "notes")
			same := true
			for more := range 1 << n {
				with := slices.Clone(holds)
				for i := range with {
					with[i] = with[i] || rules[i].Rank == Group && more>>i&1 == 1
				}
				other, _ := Decide(rules, with, here, "notes")
				same = same && other == allowed
			}
			if got := Settled(rules, holds, here, "notes"); got != same {
				t.Fatalf("%+v, %v: settled: %v, want %v", rules, holds, got, same)
			}
			seen[same]++
		}
	}
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("got %v", seen)
	}
}
