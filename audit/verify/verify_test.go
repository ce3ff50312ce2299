package verify

import (
	"strings"
	"testing"
	"time"
)

// TestLeaf: OB-04. An entry has one form in bytes, which is RFC 8785's.
func TestLeaf(t *testing.T) {
	e := Entry{
		At: time.Date(2026, 3, 1, 13, 0, 0, 5e6, time.FixedZone("", 3600)), Event: "login.succeeded",
		Fields: map[string]string{"user": "é\"\\\b\t\n\f\r\x1f<>&\u2028\xff", "by": "1"},
	}
	const want = `{"at":"2026-03-01T12:00:00.005Z","event":"login.succeeded",` +
		`"fields":{"by":"1","user":"é\"\\\b\t\n\f\r\u001f<>&` + "\u2028\uFFFD" + `"}}`
	got := string(e.Leaf())
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	back, err := ParseEntry([]byte(want))
	if err != nil || back.Fields["by"] != "1" || !back.At.Equal(e.At) {
		t.Errorf("read back: %+v, %v", back, err)
	}
	for _, wrong := range []string{
		"", "{}", " " + want, want + " ", strings.Replace(want, `"by":"1",`, `"by":"1","by":"2",`, 1),
		strings.Replace(want, ".005Z", "Z", 1), strings.Replace(want, `"fields"`, `"more":1,"fields"`, 1),
		strings.Replace(want, `"1"`, `1`, 1), strings.Replace(want, "é", `\u00e9`, 1),
	} {
		if _, err := ParseEntry([]byte(wrong)); err == nil {
			t.Errorf("%s was taken", wrong)
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	f.Add([]byte(`{"at":"2026-03-01T12:00:00.005Z","event":"a","fields":{"b":"c"}}`))
	f.Fuzz(func(t *testing.T, leaf []byte) {
		if e, err := ParseEntry(leaf); err == nil && string(e.Leaf()) != string(leaf) {
			t.Errorf("%q is read and not written", leaf)
		}
	})
}

// TestCheckpointText: OB-04, C2SP tlog-checkpoint.
func TestCheckpointText(t *testing.T) {
	c := Checkpoint{Origin: "auth.example.com/audit", Size: 20852163, Root: Hash{1}}
	back, err := parseCheckpoint(c.Text() + "an extension\n")
	if err != nil || back != c {
		t.Errorf("got %+v, %v", back, err)
	}
	for _, wrong := range []string{
		"", "a\n1\n", "a\n01\n" + c.Root.String() + "\n", "a\n-1\n" + c.Root.String() + "\n", "a\n1\nAQ==\n",
		"a\n1\n" + c.Root.String(),
	} {
		if _, err := parseCheckpoint(wrong); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
	if _, err := OpenCheckpoint([]byte(c.Text()+"\n— auth.example.com/audit AAAA\n"),
		"auth.example.com/audit+f7a1+AAAA"); err == nil {
		t.Error("a text that is no key was taken as one")
	}
}
