package form

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// paramPushed contains the server's data about a pushed request. It occurs in queries that the
// server has sealed; Foreign removes it from all others.
const paramPushed = "pushed"

// Pushed is the server's data about a pushed request (RFC 9126).
type Pushed struct {
	// Code is the code that the answer gives, see grant.NewCode: a pushed request creates one
	// grant.
	Code string
	// Unread reports that the client's metadata document had not been read, so the client did not
	// authenticate.
	Unread  bool
	Browser string    // the browser that opened it, or ""
	Until   time.Time // end of the time for that browser
}

// Foreign returns the parameters that a browser or a client sent, without the mark of a pushed
// request.
func Foreign(values url.Values) url.Values {
	values.Del(paramPushed)
	return values
}

// AsPushed marks a query as pushed.
func (q Query) AsPushed(p Pushed) Query {
	v := q.Values()
	v.Set(paramPushed, strings.Join([]string{
		p.Code, strconv.FormatBool(p.Unread), p.Browser, strconv.FormatInt(p.Until.Unix(), 10),
	}, " "))
	return Query(v.Encode())
}

// Pushed returns the data of a pushed query, or nil.
func (q Query) Pushed() *Pushed { return New(q.Values()).Pushed() }

// PushedCode returns the Code of a pushed query, or "".
func (q Query) PushedCode() string {
	if p := q.Pushed(); p != nil {
		return p.Code
	}
	return ""
}

// Pushed returns the data of a pushed request, or nil.
func (p Params) Pushed() *Pushed {
	part := strings.Split(p.Get(paramPushed), " ")
	if len(part) != 4 {
		return nil
	}
	until, err := strconv.ParseInt(part[3], 10, 64)
	if err != nil {
		return nil
	}
	return &Pushed{Code: part[0], Unread: part[1] == "true", Browser: part[2], Until: time.Unix(until, 0)}
}
