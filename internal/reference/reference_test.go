package reference

import "testing"

func TestReferences(t *testing.T) {
	own, other := NewOf("notes-server"), NewOf("files-server")
	switch {
	case !IsOf(own, "notes-server"):
		t.Errorf("OB-02: %s is not recognized", own)
	case IsOf(own, "files-server"), IsOf(other, "notes-server"), IsOf(New(), "notes-server"):
		t.Error("OB-02: a reference can be another's")
	case IsOf(own+"2", "notes-server"), IsOf(own[:len(own)-1]+"a", "notes-server"), IsOf("", ""):
		t.Error("OB-02: a malformed reference is accepted")
	}
	if got, ok := Parse(" " + own[:4] + "-" + own[4:8] + " " + own[8:]); !ok || got != own {
		t.Errorf("OB-02: as people type it: got %q", got)
	}
	for _, bad := range []string{"", own[:10], own + own, "AEIOUAEI"} {
		if got, ok := Parse(bad); ok {
			t.Errorf("OB-02: %q is taken for %q", bad, got)
		}
	}
}
