package stdio

import "bytes"

// lines splits its input into lines of limited length and passes each to emit in its own memory.
type lines struct {
	limit   int
	emit    func(line []byte)
	tooLong func() // called for each dropped line; if nil, long lines are cut

	buf  []byte
	skip bool
}

// Write implements io.Writer. It never fails.
func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		rest := p
		i := bytes.IndexByte(p, '\n')
		if i >= 0 {
			rest = p[:i]
		}
		l.add(rest)
		if i < 0 {
			break
		}
		l.end()
		p = p[i+1:]
	}
	return n, nil
}

func (l *lines) add(p []byte) {
	if l.skip {
		return
	}
	if len(l.buf)+len(p) <= l.limit {
		l.buf = append(l.buf, p...)
		return
	}
	l.skip = true
	if l.tooLong != nil {
		l.buf = nil
		l.tooLong()
		return
	}
	l.buf = append(l.buf, p[:l.limit-len(l.buf)]...)
}

func (l *lines) end() {
	line := bytes.TrimRight(l.buf, "\r")
	if len(bytes.TrimSpace(line)) > 0 {
		l.emit(line)
	}
	l.buf, l.skip = nil, false
}
