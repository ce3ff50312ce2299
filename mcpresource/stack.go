package mcpresource

// stackRoom is what a request takes from here on: the guard, a reverse proxy, and the head of the
// response, whose writing alone takes 3 KiB.
const stackRoom = 10 << 10

// growStack has the stack grow once, where copying it means a few frames. A connection begins
// with 2 to 8 KiB of it, which would double two or three times on the way down, each time with
// more frames to be found and adjusted: a seventh of the CPU time of a new stream.
//
// The room is never used, so that nothing has to clear it: i is not negative.
//
//go:noinline
func growStack(i int) byte {
	if i >= 0 {
		return 0
	}
	var room [stackRoom]byte
	return room[-i%stackRoom]
}
