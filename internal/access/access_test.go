package access

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// stored has one account and no rules of its own.
type stored struct{ account storage.Membership }

func (stored) ListAccessRules(context.Context) ([]storage.AccessRule, error) { return nil, nil }

func (s stored) Membership(context.Context, string) (storage.Membership, error) {
	return s.account, nil
}

var errAway = errors.New("the provider does not answer")

// away is a provider that does not answer.
type away struct{}

func (away) ProviderGroups(context.Context, string, []string) ([]storage.ProviderGroup, error) {
	return nil, errAway
}

// TestProvidersAskedIfNeeded: RU-19: a person does not wait for a provider whose answer changes nothing.
func TestProvidersAskedIfNeeded(t *testing.T) {
	const here = "https://mcp.example.com"
	read, write := oauth.Scopes{"read"}, oauth.Scopes{"read", "write"}
	own := func(s oauth.Scopes) storage.AccessRule {
		return storage.AccessRule{Resource: here, UserID: "usr_1", UserName: "bob", Scopes: s}
	}
	group := func(name string, s oauth.Scopes) storage.AccessRule {
		return storage.AccessRule{Resource: here, Group: name, Scopes: s}
	}
	everyone := func(s oauth.Scopes) storage.AccessRule { return storage.AccessRule{Resource: here, Scopes: s} }
	for _, tt := range []struct {
		name   string
		rules  []storage.AccessRule
		groups []string
		wanted oauth.Scopes
		want   oauth.Scopes
		by     string
		err    error
	}{
		{
			name: "the person's own rule decides", rules: []storage.AccessRule{own(read), group("staff", write)},
			wanted: write, want: read, by: "the access rule for user bob",
		},
		{
			name: "another group gives all", rules: []storage.AccessRule{group("team", write), group("staff", write)},
			groups: []string{"team"}, wanted: write, want: write,
		},
		{
			name: "another group gives a part", rules: []storage.AccessRule{group("team", read), group("staff", write)},
			groups: []string{"team"}, wanted: write, err: errAway,
		},
		{
			name: "the group gives nothing more", rules: []storage.AccessRule{everyone(read), group("staff", write)},
			wanted: read, want: read,
		},
		{
			name: "the group takes away", rules: []storage.AccessRule{everyone(write), group("staff", read)},
			wanted: write, err: errAway,
		},
		{
			name: "only the group gives", rules: []storage.AccessRule{group("staff", read)}, wanted: read, err: errAway,
		},
		{
			name: "no group gives", rules: []storage.AccessRule{group("staff", read)}, wanted: oauth.Scopes{"write"},
			by: "the access rule for group staff",
		},
	} {
		t.Run("RU-19 "+tt.name, func(t *testing.T) {
			s := stored{storage.Membership{UserID: "usr_1", Groups: tt.groups}}
			got, by, err := New(s, away{}, tt.rules, time.Now).Permit(t.Context(), "usr_1", here, tt.wanted)
			if !slices.Equal(got, tt.want) || by != tt.by || !errors.Is(err, tt.err) {
				t.Errorf("got %q, %q, %v, want %q, %q, %v", got, by, err, tt.want, tt.by, tt.err)
			}
		})
	}
}

// TestApprovalsWithoutGroups: RU-19: if the groups of a user cannot be read, the user approves each
// call, but only where rules require approvals.
func TestApprovalsWithoutGroups(t *testing.T) {
	rules := []storage.AccessRule{
		{Resource: "https://bank.example", Group: "staff", All: true, Approve: []string{"pay"}},
		{Resource: "https://notes.example", Group: "staff", All: true},
		{Resource: "https://shop.example", Group: "staff", All: true, Approve: []string{"pay"}},
		{Resource: "https://shop.example", UserID: "usr_1", All: true, Approve: []string{"buy"}},
	}
	s := stored{storage.Membership{UserID: "usr_1"}}
	for resource, want := range map[string][]string{
		"https://bank.example": {"*"}, "https://notes.example": nil, "https://shop.example": {"buy"},
	} {
		got, err := New(s, away{}, rules, time.Now).Approvals(t.Context(), "usr_1", resource)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", resource, got, err, want)
		}
	}
}
