package main

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// The question before a finalize names what clients lose with it.
func TestAFinalizeSaysWhatItTakesFromClients(t *testing.T) {
	for want, names := range map[string]plans.Names{
		"": {Mode: plans.NoNames},
		" With that the names web-2.web.shop.svc to web-4.web.shop.svc are answered no more; --keep-names keeps them.":  {Mode: plans.Bridge, Service: "web"},
		" With that the pods leave the Services of namespace shop (web-clients, web-primary); --keep-names keeps them.": {Mode: plans.NoNames, Clients: []string{"web-clients", "web-primary"}},
	} {
		p := planstest.Three()
		p.Source.Namespace, p.Destination.Namespace, p.Names = "shop", "mall", names
		if got := taken(p); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
}
