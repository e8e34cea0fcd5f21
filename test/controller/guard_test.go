package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/test/internal/slicerig"
)

// AM-6: where another controller manages StatefulSets, nothing is written, and the error names
// that controller and the remedy.
func TestRefusesToStartBesideAnother(t *testing.T) {
	for name, c := range map[string]struct {
		at, says string
		left     int // canaries that another process keeps
	}{
		"the built-in controller": {"east", "kube-controller-manager has written the status", 0},
		"one of our own":          {"west", "slicecontroller has written the status", 1},
	} {
		t.Run(name, func(t *testing.T) {
			at := bed.East
			if c.at == "west" {
				at = bed.West
			}
			p, err := slicerig.Begin(binary, at.Kubeconfig, slicerig.Native)
			if err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-p.Done:
				if err == nil || p.ProcessState.ExitCode() != 1 || !strings.Contains(p.Output(), c.says) || !strings.Contains(p.Output(), "--controllers=*,-statefulset-controller") {
					t.Errorf("ended with %v and said\n%s", err, p.Output())
				}
			case <-time.After(time.Minute):
				t.Errorf("it goes on: %s", p.Output())
				_ = p.Stop()
			}
			var sets appsv1.StatefulSetList
			if err := connect(t, at).List(t.Context(), &sets); err != nil {
				t.Fatal(err)
			}
			left := slices.DeleteFunc(sets.Items, func(s appsv1.StatefulSet) bool { return !strings.HasPrefix(s.Name, "slicecontroller-canary-") })
			if len(left) != c.left {
				t.Errorf("%d canaries are left, expected %d", len(left), c.left)
			}
		})
	}
}
