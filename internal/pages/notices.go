package pages

import (
	"net/http"
	"time"
)

// Notices lists account changes that the user has not seen yet.
type Notices struct {
	Action, Step string
	Notices      []Notice // newest first
	// Recovery is when an account recovery link becomes valid; nil: there is no such link.
	Recovery *time.Time
	BackURL  string
}

// Any reports whether there is anything to show.
func (v Notices) Any() bool { return len(v.Notices) > 0 || v.Recovery != nil }

// Notice is one change.
type Notice struct {
	What   Text
	Name   string // chosen by an application, a user or a browser; "": Detail applies
	Detail Text
	At     time.Time
}

// NoticeText returns the text for a kind of change.
func NoticeText(kind string) Text {
	if t, ok := noticeTexts[kind]; ok {
		return t
	}
	return Say("notices.other")
}

var noticeTexts = map[string]Text{
	"way-added":            Say("notices.way_added"),
	"way-removed":          Say("notices.way_removed"),
	"way-renamed":          Say("notices.way_renamed"),
	"password-removed":     Say("notices.password_removed"),
	"recovery-renewed":     Say("notices.recovery_renewed"),
	"recovery-removed":     Say("notices.recovery_removed"),
	"recovery-used":        Say("notices.recovery_used"),
	"recover-link-made":    Say("notices.recover_link_made"),
	"recovery-stopped":     Say("notices.recovery_stopped"),
	"password-changed":     Say("notices.password_changed"),
	"account-connected":    Say("notices.account_connected"),
	"account-disconnected": Say("notices.account_disconnected"),
	"key-made":             Say("notices.key_made"),
	"connection-resumed":   Say("notices.connection_resumed"),
	"codes-guessed":        Say("notices.codes_guessed"),
	"device-signed-in":     Say("notices.device_signed_in"),
}

// Notices shows account changes. Its forms post step and act (seen or stop).
func (p *Pages) Notices(w http.ResponseWriter, v Notices) {
	p.show(w, http.StatusOK, "notices", v, policy{script: true})
}
