package pages

import "time"

var (
	sampleTime  = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	sampleUntil = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
)

var (
	sampleNotices = Notices{
		Action: "/account/notices", Step: "sealed-step", Recovery: &sampleTime,
		Notices: []Notice{
			{What: NoticeText("way-added"), Name: "Anna", At: sampleTime},
			{What: NoticeText("password-changed"), At: sampleTime},
		},
	}
	sampleInvitation = Link{
		Action: "/link/mcplk_x", Step: "sealed-step", Username: "alice", Password: true,
		Heading: Say("link.invite"), Lead: Say("link.invite_lead", "name", "alice"), Button: Say("link.invite_button"),
		Problem: Say("link.short"), Until: Say("link.until", "time", sampleUntil),
	}
	sampleRecovery = Link{
		Action: "/link/mcplk_x", Step: "sealed-step", Username: "alice", Password: true,
		Heading: Say("link.recover_how"), Lead: Say("link.recover_how_lead", "name", "alice"),
		Button: Say("link.recover_button"), Until: Say("link.until", "time", sampleUntil),
		Passkey: &Passkey{Action: "/link/mcplk_x", Step: "sealed-step", Options: "{}"},
	}
	sampleStop = Link{
		Action: "/link/mcplk_x", Step: "sealed-step", Username: "alice",
		Heading: Say("link.stop"), Lead: Say("link.stop_lead", "name", "alice"), Button: Say("link.stop_button"),
	}
)
