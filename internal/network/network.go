// Package network says by which parts of an address its user is counted.
package network

import "net/netip"

// Unknown is what a request without an address is counted by.
const Unknown = "unknown"

// Blocks returns the networks that an address is counted by, the smallest first: a /24, or
// with IPv6 the /64 that one subscriber has to themselves, and the /56 and the /48 that
// providers give to customers for the asking, of which each has 256 and 65,536 networks of
// the former kind (RFC 6177 §2).
func Blocks(a netip.Addr) []string {
	if !a.IsValid() {
		return []string{Unknown}
	}
	a = a.Unmap().WithZone("")
	sizes := []int{24}
	if a.Is6() {
		sizes = []int{64, 56, 48}
	}
	var out []string
	for _, bits := range sizes {
		out = append(out, netip.PrefixFrom(a, bits).Masked().String())
	}
	return out
}

// Coarse is the network of an address as it is kept for people to recognize where a sign-in came
// from: one that many share, and no more. It is "" when the address is not known.
func Coarse(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	blocks := Blocks(a)
	return blocks[len(blocks)-1]
}

// Allowance is how many times as much as the smallest network one of the larger ones may
// have, by its place in Blocks. It grows much slower than they do: most of a customer's
// networks are empty.
func Allowance(place int) int { return 1 << place }
