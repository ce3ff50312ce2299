package pages

import "time"

func sampleRemote() Remote {
	return Remote{
		URL: "https://auth.example.com/device", Code: "4DJB-MJHT", Number: "27", Minutes: 5, Seconds: 300,
		QR: QR{Path: "M4 4h7v1h-7z", Size: 29, Label: Say("remote.qr")}, SelfURL: "/login/device?ask=sealed",
		StateURL: "/login/device/state?ask=sealed", ElsewayURL: "/login",
	}
}

func sampleRemoteAsk() RemoteAsk {
	return RemoteAsk{
		Action: "/device/sign-in", Step: "sealed-step", Code: "4DJB-MJHT",
		Agent:   Say("account.agent", "browser", "Firefox", "system", "Linux"),
		Address: "192.0.2.17", Near: true, Asked: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		Username: "alice", SignOutAction: "/logout", SignOutStep: "sealed-sign-out",
	}
}
