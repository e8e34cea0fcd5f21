package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// A plan that cannot be read is listed as a row and is no error.
func TestGetListsWhatItCannotRead(t *testing.T) {
	on, config := serve(t, []string{"home"}, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "stsmigrate-db", Labels: map[string]string{plans.PlanLabel: "db"}},
		Data:       map[string]string{"plan.yaml": "apiVersion: stsmigrate.dev/v99\nkind: Plan"},
	})
	keep(t, on, "stsmigrate", func(j *journal.Journal) { j.Detached = true })
	got := command(t, "get", "-A", "--kubeconfig", config)
	var rows []string
	for _, line := range strings.Split(strings.TrimSpace(got.out), "\n") {
		rows = append(rows, oneLine(line))
	}
	want := []string{
		"NAMESPACE NAME STATE SOURCE DESTINATION", "mall db Unreadable ? ?", "stsmigrate web Planned shop/web in home mall/web in home",
		`mall/db: ConfigMap mall/stsmigrate-db: the Plan is of version "stsmigrate.dev/v99", this program reads "` + plans.APIVersion + `": use the stsmigrate that made it`,
	}
	if got.code != exitDone || strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d\n%s\n%s\nexpected\n%s", got.code, strings.Join(rows, "\n"), got.errOut, strings.Join(want, "\n"))
	}
	if got := command(t, "get", "-n", "stsmigrate", "-o", "json", "--kubeconfig", config); got.code != exitDone || !strings.Contains(got.out, `"state": "Planned"`) {
		t.Errorf("%+v", got)
	}
}

func TestGetSaysWhereThereAreNoPlans(t *testing.T) {
	_, config := serve(t, []string{"home"})
	for _, c := range []struct{ flag, want string }{{"-A", "no plans in any namespace\n"}, {"-nmall", "no plans in namespace \"mall\"\n"}} {
		if got := command(t, "get", c.flag, "--kubeconfig", config); got.code != exitDone || got.out != c.want {
			t.Errorf("%s: %+v, expected %q", c.flag, got, c.want)
		}
	}
}
