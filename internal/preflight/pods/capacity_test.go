package pods

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/internal/preflight/scheduling"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func withCPU(cpu string) corev1.Pod {
	p := corev1.Pod{}
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	return p
}

func node(name, zone, cpu string, change ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("10")}
	for _, c := range change {
		c(&n)
	}
	return n
}

func inZone(zone string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
	}}}
}

func TestPodsArePutWhereTheyFit(t *testing.T) {
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	}
	disliked := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "slow", Effect: corev1.TaintEffectPreferNoSchedule}}
	}
	done := withCPU("4")
	done.Status.Phase = corev1.PodSucceeded
	for _, c := range []struct {
		name    string
		pod     func(*corev1.Pod) // requests 2 CPUs
		nodes   []corev1.Node
		running map[string][]corev1.Pod
		volumes []*corev1.NodeSelector
		takes   int // how many pods fit, one after the other, and no more
		why     string
	}{
		{name: "no nodes", why: "there are no nodes"},
		{name: "room for two", nodes: []corev1.Node{node("a", "x", "5")}, takes: 2, why: "none of 1 nodes can take it: 1 with too little cpu"},
		{name: "beside what runs", nodes: []corev1.Node{node("a", "x", "5")}, running: map[string][]corev1.Pod{"a": {withCPU("2"), done}}, takes: 1, why: "none of 1 nodes can take it: 1 with too little cpu"},
		{name: "not too many pods", nodes: []corev1.Node{node("a", "x", "64", func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1") })}, takes: 1, why: "none of 1 nodes can take it: 1 with too little pods"},
		{name: "on the second node", nodes: []corev1.Node{node("a", "x", "1"), node("b", "x", "2")}, takes: 1, why: "none of 2 nodes can take it: 2 with too little cpu"},
		{name: "not on cordoned or tainted ones", nodes: []corev1.Node{node("a", "x", "4", cordoned), node("b", "x", "4", tainted)}, why: "none of 2 nodes can take it: 1 with taint gpu, 1 with taint node.kubernetes.io/unschedulable"},
		{name: "on one that is only disliked", nodes: []corev1.Node{node("a", "x", "2", disliked)}, takes: 1, why: "none of 1 nodes can take it: 1 with too little cpu"},
		{name: "on one that it tolerates", pod: func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		}, nodes: []corev1.Node{node("a", "x", "2", tainted)}, takes: 1, why: "none of 1 nodes can take it: 1 with too little cpu"},
		{name: "where the selector says", pod: func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "y"}
		}, nodes: []corev1.Node{node("a", "x", "4"), node("b", "y", "2")}, takes: 1, why: "none of 2 nodes can take it: 1 not what nodeSelector or node affinity ask for, 1 with too little cpu"},
		{name: "where the affinity says", pod: func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: inZone("z")}}
		}, nodes: []corev1.Node{node("a", "x", "4")}, why: "none of 1 nodes can take it: 1 not what nodeSelector or node affinity ask for"},
		{name: "where the volume is", volumes: []*corev1.NodeSelector{inZone("y")}, nodes: []corev1.Node{node("a", "x", "4"), node("b", "y", "2")}, takes: 1, why: "none of 2 nodes can take it: 1 where its volume cannot be reached, 1 with too little cpu"},
		{name: "with a sidecar and an init container", pod: func(p *corev1.Pod) {
			always := corev1.ContainerRestartPolicyAlways
			sidecar, first := withCPU("1").Spec.Containers[0], withCPU("4").Spec.Containers[0]
			sidecar.RestartPolicy = &always
			p.Spec.InitContainers = []corev1.Container{sidecar, first}
		}, nodes: []corev1.Node{node("a", "x", "9")}, takes: 1, why: "none of 1 nodes can take it: 1 with too little cpu"},
	} {
		pod := withCPU("2")
		if c.pod != nil {
			c.pod(&pod)
		}
		if got := putting(t, pod, c.nodes, c.running, c.volumes, c.takes); got.Outcome != scheduling.Fits {
			t.Errorf("%s: %+v", c.name, got)
		}
		got := putting(t, pod, c.nodes, c.running, c.volumes, c.takes+1)
		if diff := cmp.Diff(c.why, got.Why); got.Outcome != scheduling.Stuck || diff != "" {
			t.Errorf("%s: one more: %+v %s", c.name, got, diff)
		}
	}
}

// putting asks for as many pods as are given, one after the other.
func putting(t *testing.T, pod corev1.Pod, nodes []corev1.Node, running map[string][]corev1.Pod, volumes []*corev1.NodeSelector, pods int) scheduling.Verdict {
	t.Helper()
	w := scheduling.World{Nodes: nodes}
	for name, list := range running {
		for _, p := range list {
			if p.Spec.NodeName = name; !ended(&p) {
				w.Pods = append(w.Pods, parsed(t, &p))
			}
		}
	}
	var q scheduling.Question
	for range pods {
		q.Waves = append(q.Waves, scheduling.Wave{Arrives: []scheduling.Arrival{{Pod: parsed(t, &pod), Spec: &pod.Spec, Reach: volumes}}})
	}
	return scheduling.Ask(&w, q)
}

func parsed(t *testing.T, pod *corev1.Pod) scheduling.Pod {
	t.Helper()
	p, err := scheduling.PodOf(pod)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The zones match as in the scheduler's plugin VolumeZone.
func TestANodeIsInTheZoneThatAVolumeIsLabelledWith(t *testing.T) {
	const zone, region, old = corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone
	type labels = map[string]string
	for name, c := range map[string]struct {
		volume, node labels
		fits         bool
	}{
		"no labels":                          {nil, labels{zone: "a"}, true},
		"the zone":                           {labels{zone: "a"}, labels{zone: "a"}, true},
		"another zone":                       {labels{zone: "a"}, labels{zone: "b"}, false},
		"one of its zones":                   {labels{zone: "a__b"}, labels{zone: "b"}, true},
		"a node without zones":               {labels{zone: "a"}, labels{"os": "linux"}, true},
		"a node with a region only":          {labels{zone: "a"}, labels{region: "r"}, false},
		"the zone, and another region":       {labels{zone: "a", region: "r"}, labels{zone: "a", region: "s"}, false},
		"the old label, met by the new":      {labels{old: "a"}, labels{zone: "a"}, true},
		"the old label, met by the old":      {labels{old: "a"}, labels{old: "a", zone: "b"}, true},
		"the old label, not met by the old":  {labels{old: "a"}, labels{old: "b", zone: "a"}, false},
		"the new label, not met by the old":  {labels{zone: "a"}, labels{old: "a"}, false},
		"the old label, met by none of them": {labels{old: "a"}, labels{zone: "b"}, false},
	} {
		pod := withCPU("1")
		n := node("n", "", "4", func(n *corev1.Node) { n.Labels = c.node })
		got := putting(t, pod, []corev1.Node{n}, nil, zones(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Labels: c.volume}}), 1)
		if (got.Outcome == scheduling.Fits) != c.fits {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The volume counts with the labels that it will have on the destination.
func TestPodsFollowTheZoneLabelsOfTheirVolumes(t *testing.T) {
	const volume = "metadata: {labels: {topology.kubernetes.io/zone: east-1}}\nspec: {nfs: {server: files, path: /a}}"
	west := node("n", "west-1", "4")
	e := checktest.Estate{Volumes: []string{volume}, There: []client.Object{&west}}
	e.Finds(t, NodesFit, "FAIL ...none of 1 nodes can take it: 1 where its volume cannot be reached")
	e.Storage = plans.Storage{Topology: []plans.Topology{{Key: corev1.LabelTopologyZone, Values: map[string]string{"east-1": "west-1"}}}}
	e.Finds(t, NodesFit)
}

func TestPodsThatBecameReadyLatelyAreNamed(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ready := func(ago time.Duration, status corev1.ConditionStatus) *corev1.Pod {
		p := &corev1.Pod{}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-ago))}}
		return p
	}
	got := lately(map[string]*corev1.Pod{
		"web-0": ready(time.Hour, corev1.ConditionTrue), "web-2": ready(time.Minute, corev1.ConditionTrue),
		"web-1": ready(10*time.Second, corev1.ConditionTrue), "web-3": ready(time.Second, corev1.ConditionFalse),
	}, now.Sub)
	if diff := cmp.Diff([]string{"web-1 (10s)", "web-2 (1m0s)"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDrainsOnEitherSideAreWarnedOf(t *testing.T) {
	cluster := func(cordoned ...string) client.Client {
		objects := []client.Object{&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", OwnerReferences: []metav1.OwnerReference{{UID: "u", Controller: new(true)}}},
			Spec:       corev1.PodSpec{NodeName: "b"},
		}}
		for _, name := range []string{"a", "b"} {
			objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: slices.Contains(cordoned, name)}})
		}
		return fake.NewClientBuilder().WithObjects(objects...).Build()
	}
	for _, c := range []struct {
		name        string
		here, there []string
		one         bool // whether both sides are in one cluster
		want        []string
	}{
		{name: "none"},
		{name: "a node without pods of the set", here: []string{"a"}, want: []string{"cordoned, or marked to be drained: a"}},
		{name: "a node with one", here: []string{"b", "a"}, want: []string{"cordoned, or marked to be drained: a, b, with web-1"}},
		{name: "on both sides", here: []string{"b"}, there: []string{"a"}, want: []string{"cordoned, or marked to be drained: b, with web-1", "cordoned, or marked to be drained: a"}},
		{name: "in one cluster", here: []string{"b"}, there: []string{"b"}, one: true, want: []string{"cordoned, or marked to be drained: b, with web-1"}},
	} {
		p := planstest.Named(t, "abc")
		if !c.one {
			p.Destination.Cluster = "two"
		}
		i := check.Inspect(p, clusters.Clusters{plans.Source: cluster(c.here...), plans.Destination: cluster(c.there...)})
		i.Now.Set = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
		found, err := Drains(t.Context(), i)
		var got []string
		for _, f := range found {
			if f.Level != check.Warn {
				t.Errorf("%s: %s is not a warning", c.name, f)
			}
			got = append(got, f.Saw)
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", c.name, err, diff)
		}
	}
}
