package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// family is a metric with its series. It limits their number to that in the definition, whatever
// callers send.
type family struct {
	Definition
	vec prometheus.Collector

	mu     sync.RWMutex // guards series
	series map[[maxLabels]string]any
}

func newFamily(d Definition) *family {
	f := &family{Definition: d, series: map[[maxLabels]string]any{}}
	var names []string
	for _, l := range d.Labels {
		names = append(names, l.Name)
	}
	switch d.Kind {
	case Counter:
		f.vec = prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, names)
	case Gauge:
		f.vec = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, names)
	case Histogram:
		f.vec = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.Buckets},
			names)
	}
	for _, values := range d.Begin {
		f.of(values...)
	}
	return f
}

// of returns the series with the given label values.
func (f *family) of(values ...string) any {
	var key [maxLabels]string
	for i, l := range f.Labels {
		key[i] = l.admit(values[i])
	}
	f.mu.RLock()
	s, ok := f.series[key]
	f.mu.RUnlock()
	if ok {
		return s
	}
	return f.add(key)
}

func (f *family) add(key [maxLabels]string) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed() && len(f.series) >= f.Most {
		for i, l := range f.Labels {
			if l.Values == nil {
				key[i] = Other
			}
		}
	}
	if s, ok := f.series[key]; ok {
		return s
	}
	values := key[:len(f.Labels)]
	var s any
	switch v := f.vec.(type) {
	case *prometheus.CounterVec:
		s = v.WithLabelValues(values...)
	case *prometheus.GaugeVec:
		s = v.WithLabelValues(values...)
	case *prometheus.HistogramVec:
		s = v.WithLabelValues(values...)
	}
	f.series[key] = s
	return s
}
