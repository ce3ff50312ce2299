package chaos

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// request is a request that can be repeated.
type request struct {
	method, path, contentType, body string
	basic                           *url.Userinfo
	header                          http.Header
}

func form(path string, values url.Values) request {
	return request{
		method: http.MethodPost, path: path, contentType: "application/x-www-form-urlencoded", body: values.Encode(),
	}
}

// answer is a response and the replica that sent it.
type answer struct {
	status int
	header http.Header
	body   []byte
	from   *replica
	// doubtful means that an earlier attempt may have succeeded without a response.
	doubtful bool
}

// patience is the time limit for events that must happen, such as an answer from a replica.
const patience = 2 * time.Minute

var errNobody = errors.New("no replica answers")

// send acts as the load balancer. It asks any replica, and another one if the connection is refused
// or breaks, or if the status is 503.
func (c *cluster) send(r request) (answer, error) {
	return c.try(r, c.replicas)
}

// ask asks one replica until it answers.
func (c *cluster) ask(r request, one *replica) (answer, error) {
	return c.try(r, []*replica{one})
}

func (c *cluster) try(r request, among []*replica) (answer, error) {
	doubtful := false
	for i, end := rand.IntN(len(among)), time.Now().Add(patience); time.Now().Before(end); i++ {
		a, sent, err := c.attempt(context.Background(), r, among[i%len(among)])
		if err == nil && a.status != http.StatusServiceUnavailable {
			if a.doubtful = doubtful; doubtful {
				c.doubtful.Add(1)
			}
			return a, nil
		}
		doubtful = doubtful || sent
		pause(time.Duration(10+rand.IntN(90)) * time.Millisecond)
	}
	return answer{}, errNobody
}

// attempt sends a request once. sent reports whether it may have arrived.
func (c *cluster) attempt(ctx context.Context, r request, to *replica) (a answer, sent bool, err error) {
	req, err := http.NewRequestWithContext(ctx, r.method, "http://"+to.address+r.path, strings.NewReader(r.body))
	if err != nil {
		return a, false, err
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	if r.basic != nil {
		password, _ := r.basic.Password()
		req.SetBasicAuth(r.basic.Username(), password)
	}
	req.Host = c.host
	began := time.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		var dial *net.OpError
		return a, !errors.As(err, &dial) || dial.Op != "dial", err
	}
	defer resp.Body.Close()
	a = answer{status: resp.StatusCode, header: resp.Header, from: to}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		return a, true, err
	}
	c.answered(r, a, time.Since(began), began)
	return a, true, nil
}

// ServeHTTP is the load balancer for browsers, at the issuer.
func (c *cluster) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	header := req.Header.Clone()
	header.Del("Connection")
	a, err := c.send(request{method: req.Method, path: req.URL.RequestURI(), body: string(body), header: header})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // fails if the browser has gone
}
