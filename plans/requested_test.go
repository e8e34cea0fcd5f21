package plans

import (
	"strings"
	"testing"
)

// The object of a plan is known by the name of the plan alone, and no two objects have the same plan.
func TestAPlanIsNamedAfterTheObjectThatRequestsIt(t *testing.T) {
	for _, c := range []struct{ namespace, object, plan string }{
		{"shop", "db", "shop.db"},
		{"shop-db", "a", "shop-db.a"},
		{"shop", "db-a", "shop.db-a"},
	} {
		if got := NameIn(c.namespace, c.object); got != c.plan {
			t.Errorf("%s/%s: %s, expected %s", c.namespace, c.object, got, c.plan)
		}
		if namespace, object := RequestedIn(c.plan); namespace != c.namespace || object != c.object {
			t.Errorf("%s: of %s/%s", c.plan, namespace, object)
		}
	}
	if namespace, object := RequestedIn("db"); namespace != "" || object != "db" {
		t.Errorf("of %s/%s, expected one of the orchestrator's namespace", namespace, object)
	}
	for name, refused := range map[string]string{
		"db":                                    "",
		"shop.db":                               "",
		strings.Repeat("n", 53) + ".db":         "",
		strings.Repeat("n", 54) + ".db":         "it has 57 characters, expected at most 56; give the object a name of at most 1",
		strings.Repeat("n", 63) + ".db":         "a name of at most 0",
		"a.b.c":                                 "expected a DNS label",
		".db":                                   "expected a DNS label",
		"shop.":                                 "expected a DNS label",
		"Shop.db":                               "no plan can be named after namespace Shop",
		"shop." + strings.Repeat("d", 41):       "expected a DNS label of at most 40 characters",
		"shop.db-journal":                       "would be that of",
		"shop.consent":                          "would be that of",
		"adopt-shop.db":                         "no plan can be named after namespace adopt-shop",
		"shop/../db":                            "no plan can be named after namespace shop/",
		strings.Repeat("d", 41):                 "expected a DNS label",
		strings.Repeat("n", 300) + ".db\n\nyes": "no plan can be named after namespace",
	} {
		err := RefuseStoredName(name)
		if (err == nil) != (refused == "") || err != nil && !strings.Contains(err.Error(), refused) {
			t.Errorf("%.80q: %v, expected %q", name, err, refused)
		}
	}
	if RefuseName("shop.db") == nil {
		t.Error("a user may choose the name of another namespace's plan")
	}
	if got := NameFor("my.set"); strings.Contains(got, ".") {
		t.Errorf("a set gives its plan the name %s", got)
	}
}
