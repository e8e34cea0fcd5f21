package plans

import (
	"slices"
	"strings"
	"testing"
)

// What is to be reached is bounded, and is a host and a port.
func TestReachIsBounded(t *testing.T) {
	for entry, good := range map[string]bool{
		"peers": true, "peers:2380": true, "db.shop.svc:5432": true, "10.0.0.1:80": true, "[fd00::1]:80": true,
		"": false, "db": false, "db:": false, "db:0": false, "db:65536": false, ":80": false, "http://db:80": false, "db:80/path": false, "-to=/etc/passwd:1": false, "a b:1": false,
		"::1:80": false, "fd00::1:80": false, "[db]:80": false, "[10.0.0.1]:80": false, "[fe80::1%eth0]:80": false, "db:080": false, "peers:080": false, "db:+80": false,
		strings.Repeat("a.", 200) + "b:80": false,
	} {
		why := Placeholder{Proof: Warm, Image: "a:1", Reach: []string{entry}}.Misfit()
		if (why == "") != good {
			t.Errorf("%q: %q", entry, why)
		}
	}
	if why := (Placeholder{Proof: Warm, Reach: slices.Repeat([]string{"a:1"}, 2)}).Misfit(); !strings.Contains(why, "twice") {
		t.Error(why)
	}
	if why := (Placeholder{Proof: Warm, Reach: slices.Repeat([]string{"a:1"}, 9)}).Misfit(); !strings.Contains(why, "at most 8") {
		t.Error(why)
	}
	for name, p := range map[string]Placeholder{"off": {Proof: NoProof, Reach: []string{"peers"}}, "no program": {Proof: Warm, Image: NoImage, Reach: []string{"peers"}}} {
		if p.Misfit() == "" {
			t.Errorf("%s is let through", name)
		}
	}
}

// What peers are called is right in every mode: a name that means another pod, or nothing, is not asked.
func TestThePeersAreCalledAsTheyAreFound(t *testing.T) {
	two := Plan{Count: 3, Source: Ref{Cluster: "a", Context: "east", Namespace: "shop", Name: "web"}, Destination: Ref{Cluster: "b", Context: "west", Namespace: "mall", Name: "web"}, Placeholder: Placeholder{Proof: Warm, Image: "a:1", Reach: []string{"peers"}}}
	one := two
	one.Destination.Cluster = "a"
	ids := Names{Mode: MCS, Service: "web", SourceID: "e", DestinationID: "w"}
	for name, c := range map[string]struct {
		plan     Plan
		names    Names
		from, is Side
		want     string // or a part of the refusal
	}{
		"bridge, not moved yet":      {two, Names{Mode: Bridge, Service: "web"}, Source, Source, "web-1.web.shop.svc"},
		"bridge, moved":              {two, Names{Mode: Bridge, Service: "web"}, Source, Destination, "web-1.web.shop.svc"},
		"bridge, on the way back":    {two, Names{Mode: Bridge, Service: "web"}, Destination, Source, "web-1.web.mall.svc"},
		"bridge in one cluster":      {one, Names{Mode: Bridge, Service: "web"}, Source, Destination, "web-1.web.shop.svc"},
		"none in one cluster":        {one, Names{Mode: NoNames}, Source, Source, "web-1.s.shop.svc"},
		"none in one, moved":         {one, Names{Mode: NoNames}, Source, Destination, "web-1.s.mall.svc"},
		"none in two":                {two, Names{Mode: NoNames}, Source, Source, "no name of a peer in the other cluster is known"},
		"mcs":                        {two, ids, Source, Source, "web-1.e.web.shop.svc.clusterset.local"},
		"mcs, moved":                 {two, ids, Source, Destination, "web-1.s.mall.svc"},
		"mcs, back":                  {two, ids, Destination, Destination, "web-1.w.web.mall.svc.clusterset.local"},
		"mcs without the names' ids": {two, Names{Mode: MCS, Service: "web"}, Source, Source, "no name of a peer in the other cluster is known"},
	} {
		c.plan.Names = c.names
		got := PeerName(&c.plan, Step{From: c.from}, 1, c.is, "s")
		if err := refuseReach(&c.plan, c.plan.OneCluster()); err != nil {
			got = err.Error()
		}
		if got != c.want && (!strings.Contains(c.want, " ") || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %s, expected %s", name, got, c.want)
		}
	}
	two.Placeholder.Image = ""
	if err := refuseReach(&two, false); err == nil || !strings.Contains(err.Error(), "--placeholder-image") {
		t.Errorf("%v", err)
	}
}
