package limits

import (
	"fmt"
	"testing"
	"time"
)

func TestBucketsAreBounded(t *testing.T) {
	now := time.Now()
	b := NewBuckets(func() time.Time { return now })
	slow := Rate{PerSecond: 0.001, Burst: 1}
	for i := range 3 * maxBuckets {
		b.Take(Draw(slow, bucket{who: fmt.Sprint(i)}))
	}
	if b.Len() > maxBuckets {
		t.Errorf("RS-51 RS-196: %d callers are kept", b.Len())
	}
	for _, i := range []int{0, maxBuckets - 1, 3*maxBuckets - 1} {
		if b.Take(Draw(slow, bucket{who: fmt.Sprint(i)})) == 0 {
			t.Errorf("RS-189: caller %d has been forgotten", i)
		}
	}
	for _, r := range []Rate{{PerSecond: 1e-30, Burst: 1 << 60}, {PerSecond: 1e30}, {PerSecond: 1e-30}} {
		if wait := NewBuckets(time.Now).Take(Draw(r, bucket{who: "extreme"})); wait != 0 {
			t.Errorf("%+v: the first waits %s", r, wait)
		}
	}
}
