package plans

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Peers is the entry of reach for the other ordinals, on the TCP ports of their containers. With ":PORT" it is for that port
// alone.
const Peers = "peers"

const (
	maxReach   = 8
	maxAddress = 260
)

// reachMisfit returns what is wrong with the list of what is to be reached, or "".
func (p Placeholder) reachMisfit() string {
	all := p.Reach
	if len(all) > 0 && p.Image == NoImage {
		return "reach is asked by the program that waits, and image is none"
	}
	if len(all) > maxReach {
		return fmt.Sprintf("reach has %d entries, expected at most %d", len(all), maxReach)
	}
	for k, entry := range all {
		host, port := cutPort(entry)
		plain := net.JoinHostPort(host, strconv.Itoa(int(port))) == entry // as the program that asks reads it
		switch {
		case slices.Contains(all[:k], entry):
			return fmt.Sprintf("reach names %.60q twice", entry)
		case entry == Peers:
		case len(entry) > maxAddress || !plain || port == 0 || host != Peers && !addressable(host):
			return fmt.Sprintf("reach has %.60q, expected %s, %s:PORT or HOST:PORT, with an address of IPv6 in brackets", entry, Peers, Peers)
		}
	}
	return ""
}

// cutPort returns host and port of an entry; 0 for a port that is none.
func cutPort(entry string) (host string, port uint16) {
	at := strings.LastIndexByte(entry, ':')
	if at < 0 {
		return entry, 0
	}
	n, _ := strconv.ParseUint(entry[at+1:], 10, 16)
	return strings.Trim(entry[:at], "[]"), uint16(n)
}

func addressable(host string) bool {
	at, err := netip.ParseAddr(host)
	return err == nil && at.Zone() == "" || subdomain(host)
}

// AsksPeers reports whether an entry of reach is about the other ordinals, and on which port; 0 for those of the containers.
func AsksPeers(entry string) (port uint16, is bool) {
	host, port := cutPort(entry)
	return port, host == Peers
}

// refuseReach returns why what is to be reached cannot be asked for in this plan, of one cluster or two.
func refuseReach(p *Plan, one bool) error {
	if len(p.Placeholder.Reach) == 0 {
		return nil
	}
	if p.Placeholder.Program() == "" {
		return fmt.Errorf("placeholder: reach is asked by the program that waits, and there is none: name its image (--placeholder-image; this program has one of its own only if it is released)")
	}
	peers := slices.ContainsFunc(p.Placeholder.Reach, func(entry string) bool { _, is := AsksPeers(entry); return is })
	switch {
	case !peers || one || p.Names.Mode == Bridge:
	case p.Names.Mode == MCS && p.Names.SourceID != "" && p.Names.DestinationID != "":
	default:
		return fmt.Errorf("placeholder: reach has %s, and with names %s no name of a peer in the other cluster is known: name hosts", Peers, p.Names.Mode)
	}
	return nil
}

// PeerName returns the name by which an ordinal that is on one side now is found from the side that a leg goes to, where the
// governing Service is called so.
func PeerName(p *Plan, step Step, ordinal int32, is Side, service string) string {
	switch {
	case p.Names.Mode == Bridge:
		return p.Host(step.From, ordinal, p.On(step.From).Namespace) // all have their old names on both sides
	case p.Names.Mode == MCS && is != step.To():
		return p.FindAs(ordinal, is)
	}
	return fmt.Sprintf("%s.%s.%s.svc", p.Pod(is, ordinal), service, p.On(is).Namespace)
}
