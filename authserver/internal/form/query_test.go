package form

import "testing"

func TestSignedIn(t *testing.T) {
	t.Run("AS-222 coming back from signing in does not demand it again", func(t *testing.T) {
		for query, want := range map[string]string{
			"client_id=a&provider=google":             "account=chosen&client_id=a",
			"client_id=a&max_age=0&prompt=login":      "account=chosen&client_id=a",
			"client_id=a&prompt=select_account":       "account=chosen&client_id=a",
			"client_id=a&prompt=login+consent":        "account=chosen&client_id=a&prompt=consent",
			"client_id=a&prompt=consent&provider=%2A": "account=chosen&client_id=a&prompt=consent",
		} {
			if got := Query(query).SignedIn(); string(got) != want {
				t.Errorf("%s: got %q, want %q", query, got, want)
			}
		}
	})
}

func TestConsented(t *testing.T) {
	for query, want := range map[string]string{
		"client_id=a&prompt=consent&provider=google": "account=chosen&client_id=a",
		"client_id=a&prompt=login+consent&max_age=5": "account=chosen&client_id=a&max_age=5",
		"client_id=a&provider=%2A":                   "account=chosen&client_id=a",
	} {
		if got := Query(query).Consented(); string(got) != want {
			t.Errorf("AS-70 a consent does not demand its page again: %s: got %q, want %q", query, got, want)
		}
	}
}
