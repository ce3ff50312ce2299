package token

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// TestIntrospectionJunk fails if unknown tokens evict the answers about good ones.
func TestIntrospectionJunk(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, fmt.Sprintf(`{"active":true,"sub":"alice","client_id":"app","aud":"a","exp":%d}`,
			time.Now().Add(time.Hour).Unix()))
	}))
	defer s.Close()
	made, err := NewIntrospectionValidator(IntrospectionConfig{
		Issuer: s.URL, Endpoint: s.URL, ClientID: "rs", ClientSecret: "s+1",
	})
	if err != nil {
		t.Fatal(err)
	}
	v := made.(*introspector)
	good := Credential{Scheme: "Bearer", Token: "good"}
	if _, err := v.Validate(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * introspectionSize {
		v.remember(fmt.Sprint("junk", i), cached{principal: nil, until: time.Now().Add(negativeCache)})
	}
	before := asked.Load()
	if _, err := v.Validate(t.Context(), good); err != nil || asked.Load() != before {
		t.Errorf("RS-45 RS-51: got %v, asked %d times more", err, asked.Load()-before)
	}
	if n := v.refused.entries.Len(); n > negativeSize {
		t.Errorf("RS-51: %d refused tokens are kept", n)
	}
}
