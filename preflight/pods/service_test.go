package pods

import (
	"testing"
)

func TestNamesOfTheOldNamespaceAreFound(t *testing.T) {
	stale := staleName("web", "shop")
	for text, want := range map[string]bool{
		"web-0.web.shop.svc.cluster.local:2380": true,
		"http://db.shop.svc":                    true,
		"web.shop:80":                           true,
		"peers=web-0.web.shop,web-1.web.shop":   true,
		"a: 1\nhost: web.shop\nb: 2":            true,
		"web.shop":                              true,
		"web.shop-new.svc":                      false,
		"db.shop-new.svc":                       false,
		"web.shop.example.com":                  false,
		"myweb.shop":                            false,
		"shop":                                  false,
		"web.mall.svc":                          false,
	} {
		if got := stale.MatchString(text); got != want {
			t.Errorf("%q: %t, expected %t", text, got, want)
		}
	}
	if staleName("", "shop").MatchString(".shop") {
		t.Error("without a Service only full names count")
	}
}
