package visit

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
)

var grantAttr = regexp.MustCompile(`data-grant="([^"]*)"`)

// Connected returns the grants on the user's account page, newest first.
func (p *Person) Connected(issuer string) (grants []string, err error) {
	page, err := p.account(issuer)
	for _, m := range grantAttr.FindAllStringSubmatch(page, -1) {
		grants = append(grants, m[1])
	}
	return grants, err
}

// Press presses a button of a connected application on the account page: disconnect, pause, resume
// or narrow. After narrow, the application keeps the scopes.
func (p *Person) Press(issuer, grant, act string, scopes ...string) error {
	page, err := p.account(issuer)
	if err != nil {
		return err
	}
	_, of, ok := strings.Cut(page, `data-grant="`+grant+`"`)
	form := formTag.FindString(of)
	if !ok || form == "" {
		return fmt.Errorf("visit: the account page does not have %s: %.500s", grant, page)
	}
	values := url.Values{"act": {act}, "scope": scopes}
	for _, in := range inputTag.FindAllString(form, -1) {
		name, value := nameAttr.FindStringSubmatch(in), valueAttr.FindStringSubmatch(in)
		if strings.Contains(in, `type="hidden"`) && name != nil && value != nil {
			values.Set(name[1], html.UnescapeString(value[1]))
		}
	}
	at, err := url.Parse(issuer + "/account")
	if err != nil {
		return err
	}
	_, answer, err := p.post(at, actionTag.FindStringSubmatch(form)[1], values)
	if err == nil && answer != "" {
		err = fmt.Errorf("visit: %s was not done: %.500s", act, answer)
	}
	return err
}

func (p *Person) account(issuer string) (string, error) {
	at, err := url.Parse(issuer + "/account")
	if err != nil {
		return "", err
	}
	_, page, err := p.get(at)
	return page, err
}
