package session

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestUpstreamTokenIsNotPrinted(t *testing.T) {
	token := UpstreamToken{Token: "gho_secret", Type: "Bearer"}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("token", "token", token)
	for how, got := range map[string]string{
		"%v": fmt.Sprintf("%v", token), "%+v": fmt.Sprintf("%+v", token), "%#v": fmt.Sprintf("%#v", &token), "slog": log.String(),
	} {
		if strings.Contains(got, "gho_secret") || !strings.Contains(got, "[redacted]") {
			t.Errorf("AS-223: %s shows %s", how, got)
		}
	}
}
