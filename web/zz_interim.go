package web

import (
	"html/template"
	"net/http"
	"strings"
)

type Config struct{ ProductName string }
type Pages struct{}
type Party struct{ Name, Host, URL string }
type Scope struct {
	Name, Description string
	New               bool
}
type Login struct {
	Action, Step, Username, Problem string
	Client, Resource                Party
	FormTargets                     []string
}
type Consent struct {
	Action, Step                          string
	Client                                Party
	SelfRegistered                        bool
	RedirectHost                          string
	RedirectIsLoopback                    bool
	RedirectURI                           string
	Resource                              Party
	Scopes                                []Scope
	StaySignedIn                          bool
	Username, SignOutAction, SignOutStep  string
	FormTargets                           []string
}
type Error struct{ Title, Message, Advice, Code, RequestID string }
type Stopped struct {
	Title, Message, Code string
	Client               Party
	RedirectHost         string
	ReturnURL            string
	ReturnIsCustomScheme bool
}
type Setup struct{ Action, Step, Username, Problem string }
type SetupDone struct{ Username, Issuer string }
type Home struct {
	Username, Issuer    string
	Resources           []Party
	SignOutAction, Step string
}

func New(Config) (*Pages, error) { return &Pages{}, nil }

var t = template.Must(template.New("").Parse(`
{{define "Login"}}<form method=post action="{{.Action}}"><input type="hidden" name="step" value="{{.Step}}"><input name="username"><input name="password">{{.Problem}}</form>{{end}}
{{define "Consent"}}{{.Client.Name}} {{.RedirectHost}} {{.Resource.URL}} {{range .Scopes}}{{.Description}}{{end}}<form method="post" action="{{.Action}}"><input type="hidden" name="step" value="{{.Step}}"><button name="decision" value="approve"></button></form>{{end}}
{{define "Error"}}{{.}}{{end}}{{define "Stopped"}}{{.Title}} {{.Message}} {{.Code}} <a href="{{.ReturnURL}}">x</a>{{end}}
{{define "Setup"}}{{.}}{{end}}{{define "SetupDone"}}{{.}}{{end}}{{define "Home"}}{{.Username}}<form><input type="hidden" name="step" value="{{.Step}}"></form>{{end}}`))

func show(w http.ResponseWriter, status int, name string, v any, targets ...string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "frame-ancestors 'none'; form-action 'self' "+strings.Join(targets, " "))
	w.Header().Set("X-Frame-Options", "DENY")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	t.ExecuteTemplate(w, name, v)
}
func (*Pages) Assets() http.Handler                                    { return http.NotFoundHandler() }
func (*Pages) Login(w http.ResponseWriter, status int, v Login)        { show(w, status, "Login", v) }
func (*Pages) Consent(w http.ResponseWriter, status int, v Consent)    { show(w, status, "Consent", v) }
func (*Pages) Error(w http.ResponseWriter, status int, v Error)        { show(w, status, "Error", v) }
func (*Pages) Stopped(w http.ResponseWriter, status int, v Stopped)    { show(w, status, "Stopped", v) }
func (*Pages) Setup(w http.ResponseWriter, status int, v Setup)        { show(w, status, "Setup", v) }
func (*Pages) SetupDone(w http.ResponseWriter, v SetupDone)            { show(w, 200, "SetupDone", v) }
func (*Pages) Home(w http.ResponseWriter, v Home)                      { show(w, 200, "Home", v) }
func (*Pages) SignedOut(w http.ResponseWriter)                         { show(w, 200, "Error", Error{}) }
