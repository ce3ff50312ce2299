package authserver

import (
	"errors"
	"net/http"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/device"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/authserver/internal/session"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/wire"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// paramUserCode is the parameter of /device for a user code (RFC 8628 §3.3.1).
const paramUserCode = "user_code"

// deviceBody is the response to a device authorization request (RFC 8628 §3.2).
type deviceBody struct {
	DeviceCode              string `json:"device_code"`               // REQUIRED
	UserCode                string `json:"user_code"`                 // REQUIRED
	VerificationURI         string `json:"verification_uri"`          // REQUIRED
	VerificationURIComplete string `json:"verification_uri_complete"` // OPTIONAL
	ExpiresIn               int64  `json:"expires_in"`                // REQUIRED, in seconds
	Interval                int64  `json:"interval"`                  // OPTIONAL, in seconds
}

// errDeviceClearance refuses clearance scopes. The page about a device cannot show a call, and with
// the tokens of a new grant the call would only wait again.
var errDeviceClearance = oauth.NewError(oauth.InvalidScope,
	"A clearance cannot be asked for with a device code. Open the page of the clearance, then call again.")

// handleDeviceAuthorization serves POST /device_authorization (RFC 8628 §3.1).
func (s *Server) handleDeviceAuthorization(w http.ResponseWriter, r *http.Request) {
	p, err := readForm(r)
	if err != nil {
		s.writeParseError(w, r, err)
		return
	}
	client, err := s.grants.clientAuth.ForGrant(r.Context(),
		grant.TokenRequest{GrantType: oauth.GrantDeviceCode, Credentials: credentials(r, p)})
	var begun device.Begun
	var acr string
	if err == nil {
		acr, err = p.ACR(s.ways.ACRs())
	}
	if _, clearance := oauth.ParseScopes(p.Get("scope")).WithoutClearances(); err == nil && clearance != "" {
		err = errDeviceClearance
	}
	age := time.Duration(-1)
	if asked, ok, bad := p.MaxAge(); ok {
		age = asked
	} else if err == nil {
		err = bad
	}
	if err == nil {
		from := s.cfg.TrustedProxies.ClientAddr(r)
		begun, err = s.devices.Begin(r.Context(), client, device.Ask{
			Scopes:    scopes(p),
			Resources: p.Resources(),
			MaxAge:    age,
			ACR:       acr,
			Agent:     r.UserAgent(),
			Address:   from.String(),
			Networks:  network.Blocks(from),
		})
	}
	if err != nil {
		s.cfg.Audit.Record(r.Context(), audit.AuthorizeRefused, refusal.Attr(err))
		s.writeError(w, r, err)
		return
	}
	request.Of(r.Context()).Issued(begun.DeviceCode)
	request.Of(r.Context()).ForDevice(device.Read(begun.UserCode))
	wire.WriteJSON(w, http.StatusOK, deviceBody{
		DeviceCode:              begun.DeviceCode,
		UserCode:                begun.UserCode,
		VerificationURI:         s.cfg.Issuer + "/device",
		VerificationURIComplete: s.cfg.Issuer + "/device?" + paramUserCode + "=" + begun.UserCode,
		ExpiresIn:               int64(begun.ExpiresIn / time.Second),
		Interval:                int64(begun.Interval / time.Second),
	})
}

// newDevices returns the device requests of the server.
func (s *Server) newDevices() *device.Requests {
	return device.New(device.Config{
		Store:   s.cfg.Store,
		Catalog: s.catalog,
		MAC:     func(code string) storage.Hash { return s.ring.MAC("device user code", []byte(code)) },
		Limits:  s.limits,
		Audit:   s.cfg.Audit,
		Now:     s.cfg.Now,
	})
}

// devicePages serves the pages where users decide about devices.
type devicePages struct {
	devices *flow.Devices
	remote  *remotePages // nil: browsers cannot be signed in from other devices
	forms   *pageForms
	steps   *steps
}

// page serves GET /device.
func (p *devicePages) page(w http.ResponseWriter, r *http.Request) {
	query, ok := p.forms.query(w, r)
	if !ok {
		return
	}
	typed := query.Get(paramUserCode)
	switch {
	case linked(r):
		p.steps.write(w, r, p.devices.Fill(r.Context(), typed, p.forms.token(r)))
	case p.remote != nil && device.IsSignIn(typed):
		p.remote.look(w, r, typed)
	default:
		p.steps.write(w, r, p.devices.Look(r.Context(), typed, p.forms.token(r), p.forms.networks(r)))
	}
}

// linked reports whether a browser comes from a link or a typed address, and not from a page of
// this server. A code from a link is looked up only when the user presses the button: wrong codes
// count, and any page could send a browser here with a dozen of them. Browsers since 2023 report
// where a request comes from (Fetch Metadata Request Headers, W3C); with others, no additional
// press is required.
func linked(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin"
}

// decide serves POST /device.
func (p *devicePages) decide(w http.ResponseWriter, r *http.Request) {
	var form flow.DeviceForm
	posted, ok := p.forms.open(w, r, purposeDevice, &form)
	if !ok {
		return
	}
	request.Of(r.Context()).ForDevice(device.Read(form.Code))
	p.steps.write(w, r, p.devices.Decide(r.Context(), form, decisionOf(posted), p.forms.token(r)))
}

// writeDevice writes the steps of a device request.
func (s *steps) writeDevice(w http.ResponseWriter, r *http.Request, step flow.Step) {
	switch step := step.(type) {
	case flow.EnterDeviceCode:
		s.enterDeviceCode(w, r, step)
	case flow.AskDevice:
		s.askDevice(w, r, step)
	case flow.DeviceDecided:
		s.web.For(r).DeviceDone(w, pages.DeviceDone{
			Client:   clientParty(step.Request.Client),
			Resource: resourceParty(step.Request.Resource.Resource),
			Denied:   step.Denied,
		})
	}
}

func (s *steps) enterDeviceCode(w http.ResponseWriter, r *http.Request, step flow.EnterDeviceCode) {
	v, status := pages.DeviceCode{Action: s.views.paths.device, Code: step.Code}, http.StatusOK
	switch {
	case errors.Is(step.Err, device.ErrThrottled):
		status = http.StatusTooManyRequests
		wire.SetRetryAfter(w.Header(), device.Window)
		v.Problem = pages.Say("device.throttled")
		request.Of(r.Context()).Refuse(oauth.NewError(oauth.SlowDown, "too many wrong codes of devices"))
	case step.Err != nil:
		status = http.StatusBadRequest
		v.Problem = pages.Say("device.wrong")
		if device.IsSignIn(step.Code) {
			v.Problem = pages.Say("remote.wrong")
		}
		request.Of(r.Context()).Refuse(oauth.NewError(oauth.InvalidRequest, "no device waits under the code"))
	}
	s.web.For(r).DeviceCode(w, status, v)
}

func (s *steps) askDevice(w http.ResponseWriter, r *http.Request, step flow.AskDevice) {
	sealed, err := s.forms.seal(w, r, purposeDevice, step.Form)
	var signOut string
	if err == nil {
		signOut, err = s.forms.signOut(w, r, step.Visit.User, entry.Destination{Device: step.Form.Code})
	}
	if err != nil {
		s.errors.show(w, r, http.StatusBadRequest, err)
		return
	}
	request.Of(r.Context()).ForDevice(device.Read(step.Form.Code))
	request.Of(r.Context()).Showing("consent page for a device")
	paths, d := s.views.paths, step.Device
	s.web.For(r).Device(w, pages.Device{
		Action: paths.device, Step: sealed, Request: s.views.request(step.Request, step.Question, step.NothingChosen),
		Code: device.Show(step.Form.Code), Agent: session.Agent(d.Agent), Address: d.Address,
		Near: s.forms.near(r, d.Address), Asked: d.CreatedAt,
		Username: step.Visit.User.Name, SignOutAction: paths.logout, SignOutStep: signOut,
	})
}
