package faults

import (
	"net/http"
	"net/url"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// deviceForm returns a device authorization request.
func deviceForm() url.Values {
	return url.Values{"client_id": {"tv"}, "resource": {resource}, "scope": {"mcp"}}
}

// device sends a device authorization request and returns its codes.
func (r *rig) device() (deviceCode, userCode string) {
	r.t.Helper()
	got := r.browser().post("/device_authorization", deviceForm())
	deviceCode, userCode = got.json("device_code"), got.json("user_code")
	if deviceCode == "" || userCode == "" {
		r.t.Fatalf("device: got %d %s", got.status, got.body)
	}
	return deviceCode, userCode
}

func pollForm(deviceCode string) url.Values {
	return url.Values{"grant_type": {oauth.GrantDeviceCode}, "client_id": {"tv"}, "device_code": {deviceCode}}
}

// AS-240
var deviceScenarios = []scenario{
	{
		name: "POST /device_authorization",
		prepare: func(r *rig) func() answer {
			b := r.browser()
			return func() answer { return b.post("/device_authorization", deviceForm()) }
		},
		done: hasJSON("device_code"),
	},
	{
		name: "GET /device with a code",
		prepare: func(r *rig) func() answer {
			b := r.signIn()
			_, code := r.device()
			return func() answer { return b.get("/device?user_code=" + code) }
		},
		done: says(`value="approve"`),
	},
	{
		name: "POST /device, approve",
		prepare: func(r *rig) func() answer {
			b := r.signIn()
			_, code := r.device()
			action, form := b.get("/device?user_code="+code).form(r.t, "/device")
			form.Set("decision", "approve")
			return func() answer { return b.post(action, form) }
		},
		done: says("Your device is connected"),
	},
	{
		name: "POST /device, deny",
		prepare: func(r *rig) func() answer {
			b := r.signIn()
			_, code := r.device()
			action, form := b.get("/device?user_code="+code).form(r.t, "/device")
			form.Set("decision", "deny")
			return func() answer { return b.post(action, form) }
		},
		done: says("Nothing was connected"),
	},
	{
		name: "POST /token, device code that waits",
		prepare: func(r *rig) func() answer {
			code, _ := r.device()
			b := r.browser()
			return func() answer { return b.post("/token", pollForm(code)) }
		},
		done: func(a answer) bool {
			return a.status == http.StatusBadRequest &&
				(a.json("error") == "authorization_pending" || a.json("error") == "slow_down")
		},
	},
	{
		name: "POST /token, device code that was approved",
		prepare: func(r *rig) func() answer {
			b := r.signIn()
			code, userCode := r.device()
			action, form := b.get("/device?user_code="+userCode).form(r.t, "/device")
			form.Set("decision", "approve")
			b.post(action, form)
			return func() answer { return b.post("/token", pollForm(code)) }
		},
		done: hasJSON("access_token"),
	},
}
