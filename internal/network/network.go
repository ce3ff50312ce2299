// Package network maps addresses to the networks that their users are counted by.
package network

import "net/netip"

// Unknown is the network of a request without an address.
const Unknown = "unknown"

// Blocks returns the networks that an address is counted by, smallest first. For IPv4, this is the
// /24. For IPv6, these are the /64 of one subscriber, and the /56 and /48 that providers assign to
// customers on request. These contain 256 and 65,536 of the /64 networks (RFC 6177 §2).
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

// Coarse returns the network of an address that is stored to help users recognize a sign-in. Many
// users share this network. Coarse returns "" if the address is not known.
func Coarse(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	blocks := Blocks(a)
	return blocks[len(blocks)-1]
}

// Allowance returns the multiple of the smallest network's limit for the network at an index of
// Blocks. It grows much slower than the networks, because most of a customer's networks are empty.
func Allowance(place int) int { return 1 << place }
