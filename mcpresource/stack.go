package mcpresource

// stackRoom is the stack size that a request needs from here: for the guard, a reverse proxy, and
// the response's head, whose writing takes 3 KiB.
const stackRoom = 10 << 10

// growStack grows the stack once, here, where few frames must be copied. A connection starts with a
// stack of 2 to 8 KiB. Otherwise the stack doubles two or three times on the way down, with more
// frames to adjust each time. That took a seventh of the CPU time of a new stream.
//
// The room is never used, so it is never cleared: i is not negative.
//
//go:noinline
func growStack(i int) byte {
	if i >= 0 {
		return 0
	}
	var room [stackRoom]byte
	return room[-i%stackRoom]
}
