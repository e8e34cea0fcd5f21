package controller_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// AM-6: where somebody else takes care of StatefulSets, nothing is touched, and the person
// is told who it is and what to do.
func TestRefusesToStartBesideAnother(t *testing.T) {
	for name, c := range map[string]struct{ at, says string }{
		"the built-in controller": {"east", "kube-controller-manager has written the status"},
		"one of our own":          {"west", "slicecontroller has written the status"},
	} {
		t.Run(name, func(t *testing.T) {
			at := bed.East
			if c.at == "west" {
				at = bed.West
			}
			p, err := begin(at.Kubeconfig, native)
			if err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-p.done:
				if err == nil || p.ProcessState.ExitCode() != 1 || !strings.Contains(p.output(), c.says) || !strings.Contains(p.output(), "--controllers=*,-statefulset-controller") {
					t.Errorf("ended with %v and said\n%s", err, p.output())
				}
			case <-time.After(time.Minute):
				t.Errorf("it goes on: %s", p.output())
				_ = p.stop()
			}
			var sets appsv1.StatefulSetList
			if err := connect(t, at).List(t.Context(), &sets); err != nil {
				t.Fatal(err)
			}
			for _, s := range sets.Items {
				if strings.HasPrefix(s.Name, "slicecontroller-canary-") {
					t.Errorf("%s is left", s.Name)
				}
			}
		})
	}
}
