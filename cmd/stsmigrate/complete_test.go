package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func TestTheShellCompletesNames(t *testing.T) {
	on, config := serve(t, []string{"home", "away"}, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "db"}},
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mail", Annotations: map[string]string{plans.StampAnnotation: "mail-abc123/1/2"}}})
	keep(t, on, "mall", func(*journal.Journal) {})
	t.Setenv("KUBECONFIG", config)
	for args, want := range map[string]string{
		"status|-n|mall|":     "web\tPlanned :4",
		"apply|-n|mall|w":     "web\tPlanned :0",
		"status|-n|mall|web|": ":4",
		"plan|-n|mall|":       "db :4",
		"check|-n|mall|d":     "db :0",
		"plan|--context|":     "away home :4",
		"plan|--to-context|h": "home :4",
		"plan|--namespace|ku": "kube-system :4",
		"plan|--names|":       "bridge mcs none :4",
		"status|-o|js":        "json jsonpath= :6",
		"explain|ClaimM":      "ClaimMounted :4",
		"version|":            ":4",
		"resume|-n|shop|":     "mail\tmarks a set :4", // its record is elsewhere
		"names|--dry-run=":    "none client :4",
		"abort|--dry-run=":    "none client server :4",
		"schema|No":           "Notification :4",
	} {
		got := command(t, append([]string{"__complete"}, strings.Split(args, "|")...)...)
		if have := strings.Join(strings.FieldsFunc(strings.TrimSpace(got.out), func(r rune) bool { return r == '\n' }), " "); have != want {
			t.Errorf("%s: %q, expected %q (%s)", args, have, want, got.errOut)
		}
	}
	if got := command(t, "__complete", "plan", "--ignore", "csi-driver,disk"); !strings.HasPrefix(got.out, "csi-driver,disk-owner\t") {
		t.Errorf("%+v", got)
	}
	t.Setenv("KUBECONFIG", "/does/not/exist")
	if got := command(t, "__complete", "status", ""); got.code != exitDone || got.out != ":4\n" {
		t.Errorf("without a cluster: %+v", got)
	}
}
