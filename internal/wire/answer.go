package wire

import "net/http"

// Answer is a ResponseWriter that notes the status of the response. http.ResponseController finds
// the other abilities of the writer below it.
type Answer struct {
	http.ResponseWriter
	// Status is the status of the response, 0 before it has begun. Informational ones (1xx) precede
	// a response.
	Status int
	// Begin, if set, is called before each part of the response. If it returns false, the part is
	// discarded.
	Begin func() bool
}

func (a *Answer) begins(status int) bool {
	if a.Begin != nil && !a.Begin() {
		return false
	}
	if a.Status == 0 && status >= http.StatusOK {
		a.Status = status
	}
	return true
}

// WriteHeader implements http.ResponseWriter.
func (a *Answer) WriteHeader(status int) {
	if a.begins(status) {
		a.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (a *Answer) Write(b []byte) (int, error) {
	if !a.begins(http.StatusOK) {
		return len(b), nil
	}
	return a.ResponseWriter.Write(b)
}

// FlushError sends what was written, for http.ResponseController.
func (a *Answer) FlushError() error {
	if !a.begins(http.StatusOK) {
		return nil
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Flush implements http.Flusher. The writer below may not be able to flush.
func (a *Answer) Flush() { _ = a.FlushError() }

// Unwrap returns the writer below, for http.ResponseController.
func (a *Answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
