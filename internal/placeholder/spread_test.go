package placeholder

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// A placeholder counts for the spread of its set like the pod that it stands for.
func TestAPlaceholderIsSpread(t *testing.T) {
	node := func(name, zone string, taints ...corev1.Taint) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone, "disk": "ssd"}}, Spec: corev1.NodeSpec{Taints: taints}}
	}
	on := func(app string, nodes ...string) (out []corev1.Pod) {
		for _, n := range nodes {
			out = append(out, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}, Spec: corev1.PodSpec{NodeName: n}})
		}
		return out
	}
	three := []corev1.Node{node("a1", "a"), node("b1", "b"), node("c1", "c", corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule})}
	going := on("web", "a1")
	going[0].DeletionTimestamp = &metav1.Time{}
	for name, c := range map[string]struct {
		more          string
		nodes         []corev1.Node
		peers, others []corev1.Pod
		want          string
	}{
		"nobody":                 {nodes: three, want: "map[]"},
		"one":                    {nodes: three, peers: on("web", "a1"), want: "map[zone:[a]]"},
		"one is going":           {nodes: three, peers: going, want: "map[]"},
		"of another":             {nodes: three, peers: on("db", "a1"), want: "map[]"},
		"a placeholder":          {nodes: three, others: on("", "a1"), want: "map[zone:[a]]"},
		"one and a placeholder":  {nodes: three, peers: on("web", "b1"), others: on("", "a1"), want: "map[zone:[a b]]"},
		"all alike":              {nodes: three, peers: on("web", "a1", "b1", "c1"), want: "map[]"},
		"a skew of two":          {more: "maxSkew: 2", nodes: three, peers: on("web", "a1"), want: "map[]"},
		"taints are counted":     {more: "nodeTaintsPolicy: Honor", nodes: three, peers: on("web", "a1", "b1"), want: "map[]"},
		"too few places":         {more: "minDomains: 4", nodes: three, peers: on("web", "a1", "b1", "c1"), want: "map[zone:[a b c]]"},
		"preferred":              {more: "whenUnsatisfiable: ScheduleAnyway", nodes: three, peers: on("web", "a1"), want: "map[]"},
		"it is about others":     {more: "labelSelector: {matchLabels: {app: db}}", nodes: three, peers: on("db", "a1"), want: "map[]"},
		"of its version":         {more: "matchLabelKeys: [version]", nodes: three, peers: on("web", "a1"), want: "map[]"},
		"nodes that it does not": {nodes: []corev1.Node{node("a1", "a"), {ObjectMeta: metav1.ObjectMeta{Name: "b1"}}}, peers: on("web", "a1", "b1"), want: "map[]"},
	} {
		p := web3(t, "containers: [{name: a}]")
		constraint := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
		if strings.Contains(c.more, "labelSelector") {
			constraint.LabelSelector = nil
		}
		if err := yaml.Unmarshal([]byte(c.more), &constraint); err != nil {
			t.Fatal(err)
		}
		p.Pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{constraint}
		got, err := Full(p.Pod, c.nodes, c.peers, c.others)
		if err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v %v, expected %s", name, got, err, c.want)
		}
	}
}
