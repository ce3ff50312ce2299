package form

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// paramPushed is what we know of a request that was pushed. It is in queries that we have sealed, and
// Foreign takes it out of all others.
const paramPushed = "pushed"

// Pushed is what we know of a request that was pushed (RFC 9126).
type Pushed struct {
	// Code is what the answer is, see grant.NewCode: a pushed request makes one grant.
	Code string
	// Unread: nothing was known of the client but its id, the URL of a document, so it did not authenticate.
	Unread  bool
	Browser string    // that has opened it, "": none has yet
	Until   time.Time // when that browser is too late
}

// Foreign are parameters as a browser or a client sent them: whatever they claim, they were not pushed.
func Foreign(values url.Values) url.Values {
	values.Del(paramPushed)
	return values
}

// AsPushed marks a query as one that was pushed.
func (q Query) AsPushed(p Pushed) Query {
	v := q.Values()
	v.Set(paramPushed, strings.Join([]string{
		p.Code, strconv.FormatBool(p.Unread), p.Browser, strconv.FormatInt(p.Until.Unix(), 10),
	}, " "))
	return Query(v.Encode())
}

// Pushed returns what is known of a query that was pushed, and nil for any other.
func (q Query) Pushed() *Pushed { return New(q.Values()).Pushed() }

// PushedCode is the Code of a query that was pushed, "" for any other.
func (q Query) PushedCode() string {
	if p := q.Pushed(); p != nil {
		return p.Code
	}
	return ""
}

// Pushed returns what is known of a request that was pushed, and nil for any other.
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
