package web

var (
	sampleInvitation = Link{
		Action: "/link/mcplk_x", Step: "sealed-step", Username: "alice", Password: true,
		Heading: Say("link.invite"), Lead: Say("link.invite_lead", "name", "alice"), Button: Say("link.invite_button"),
		Problem: Say("link.short"),
	}
	sampleStop = Link{
		Action: "/link/mcplk_x", Step: "sealed-step", Username: "alice",
		Heading: Say("link.stop"), Lead: Say("link.stop_lead", "name", "alice"), Button: Say("link.stop_button"),
	}
)
