package preflight

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

// What the end of a move ends, and what it leaves to others, is read from what is there now: the user may have changed it
// since the plan was made.
func TestTheEndOfAMoveSaysWhatItEnds(t *testing.T) {
	const old, next = "web-0.web.shop.svc.cluster.local", "web-0.web.mall.svc.cluster.local"
	conf := func(namespace, name string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "conf"}, Data: map[string]string{"peers": name}}
	}
	for name, c := range map[string]struct {
		hook, peers string // on the destination
		release     string
		gone, kept  bool
		want        []string
	}{
		"nothing":                 {hook: next, peers: next},
		"a hook":                  {hook: old, peers: next, want: []string{"WARN old-names...lifecycle.preStop.exec.command[0]...a name in namespace shop, which stops resolving...or finalize with --keep-names"}},
		"a copy":                  {hook: next, peers: old, want: []string{"WARN old-names...ConfigMap mall/conf: key peers"}},
		"names that are kept":     {hook: old, peers: old, kept: true},
		"a release":               {hook: next, peers: next, release: "shop", want: []string{"WARN helm...Helm release shop/shop"}},
		"a release after the end": {hook: old, peers: old, release: "shop", gone: true, want: []string{"WARN helm...Helm release shop/shop"}},
		"both":                    {hook: old, peers: next, release: "shop", want: []string{"WARN old-names", "WARN helm"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := checktest.Estate{Spec: "containers: [{name: web, envFrom: [{configMapRef: {name: conf}}], lifecycle: {preStop: {exec: {command: [" + old + "]}}}}]"}
			made := e.Inspected(t)
			here := made.Now.Set.DeepCopy()
			if c.release != "" {
				here.Labels, here.Annotations = map[string]string{"app.kubernetes.io/managed-by": "Helm"}, map[string]string{"meta.helm.sh/release-name": c.release}
			}
			there := here.DeepCopy()
			there.Namespace, there.ResourceVersion = "mall", ""
			if c.release != "" {
				there.Annotations["meta.helm.sh/release-namespace"] = "shop"
			}
			there.Spec.Template.Spec.Containers[0].Lifecycle.PreStop.Exec.Command[0] = c.hook
			e.Here, e.There = []client.Object{conf("shop", old)}, []client.Object{conf("mall", c.peers), there}
			if !c.gone {
				e.Here = append(e.Here, here)
			}
			i := e.Inspected(t)
			i.Plan.Names = plans.Names{Mode: plans.Bridge, Service: "web"}
			found, err := Ending(t.Context(), i.Plan, i.On, check.Caller{}, c.kept)
			if err != nil || len(found) != len(c.want) {
				t.Fatalf("%v, %v, expected %v", found, err, c.want)
			}
			for k, words := range c.want {
				for _, word := range strings.Split(words, "...") {
					if line := string(found[k].Level) + " " + found[k].String(); !strings.Contains(line, word) {
						t.Errorf("%q is not in %s", word, line)
					}
				}
			}
		})
	}
}
