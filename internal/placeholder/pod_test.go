package placeholder

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresource "k8s.io/component-helpers/resource"
	"sigs.k8s.io/yaml"
)

// web3 returns the place of web-3, whose pod has this spec.
func web3(t *testing.T, spec string) Place {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web-3", Labels: map[string]string{"app": "web", "version": "2"}, Annotations: map[string]string{"inject": "true"}}}
	if err := yaml.UnmarshalStrict([]byte(spec), &pod.Spec); err != nil {
		t.Fatal(err)
	}
	return Place{Name: "web-3-place", Pod: pod, Plan: "web", Set: "web", Deadline: 3600, Owner: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "u"}}
}

func made(t *testing.T, p Place) *corev1.Pod {
	t.Helper()
	pod, err := Make(p)
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

const everything = `
hostname: web-3
subdomain: web
serviceAccountName: web
schedulerName: other
priorityClassName: high
priority: 1000
readinessGates: [{conditionType: "target-health"}]
tolerations: [{key: db, operator: Exists}]
nodeSelector: {disk: ssd}
initContainers:
- {name: prepare, image: "tool:1", resources: {requests: {cpu: "2"}}}
- {name: agent, image: "agent:1", restartPolicy: Always, resources: {requests: {cpu: 100m}}, startupProbe: {tcpSocket: {port: 1}}}
containers:
- name: web
  image: web:1
  command: [/web]
  args: [--serve]
  env: [{name: P, valueFrom: {secretKeyRef: {name: s, key: k}}}]
  ports: [{containerPort: 80, hostPort: 80}]
  resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: "1", memory: 1Gi}}
  livenessProbe: {tcpSocket: {port: 80}}
  readinessProbe: {tcpSocket: {port: 80}}
  lifecycle: {preStop: {sleep: {seconds: 30}}}
  securityContext: {runAsNonRoot: true}
  volumeMounts: [{name: data, mountPath: /data, subPath: a}, {name: shared, mountPath: /s}, {name: config, mountPath: /c}]
  volumeDevices: [{name: raw, devicePath: /dev/x}]
volumes:
- {name: data, persistentVolumeClaim: {claimName: data-web-3}}
- {name: shared, persistentVolumeClaim: {claimName: shared}}
- {name: config, configMap: {name: c}}
- {name: identity, projected: {sources: [{serviceAccountToken: {path: t, audience: vault}}]}}
`

// A placeholder takes the room of the pod of its ordinal, names the same objects and has none of its claims.
func TestAPlaceholderStandsForItsOrdinal(t *testing.T) {
	p := web3(t, everything)
	p.Program.Image = "stsmigrate:1"
	s := made(t, p).Spec
	web := s.Containers[0]
	if !slices.Equal(web.Command, []string{"/.stsmigrate/placeholder", "wait"}) || web.Args != nil || web.LivenessProbe != nil || web.ReadinessProbe != nil || web.Lifecycle != nil || web.VolumeDevices != nil {
		t.Errorf("it does something: %+v", web)
	}
	if web.Image != "web:1" || len(web.Env) != 1 || len(web.VolumeMounts) != 4 || web.Ports[0].HostPort != 80 || !*web.SecurityContext.RunAsNonRoot {
		t.Errorf("it is another container: %+v", web)
	}
	if again := web3(t, everything); !reflect.DeepEqual(p.Pod, again.Pod) {
		t.Error("the pod that it was made of has changed")
	}
}

// A claim of the ordinal is not mounted, nor one that all ordinals mount. Everything else is.
func TestAPlaceholderHasNoClaim(t *testing.T) {
	s := made(t, web3(t, everything)).Spec
	for _, v := range s.Volumes {
		if v.PersistentVolumeClaim != nil {
			t.Errorf("it has the claim %s", v.PersistentVolumeClaim.ClaimName)
		}
	}
	if s.Volumes[2].ConfigMap == nil || s.Volumes[3].Projected == nil {
		t.Errorf("%+v", s.Volumes)
	}
}

// A placeholder is a pod of its own, where the pod of its ordinal would be.
func TestAPlaceholderIsNoMember(t *testing.T) {
	p := web3(t, everything)
	p.Program.Image = "stsmigrate:1"
	pod, err := Make(p)
	if err != nil {
		t.Fatal(err)
	}
	token := pod.Spec.AutomountServiceAccountToken
	for what, c := range map[string]struct{ got, want any }{
		"the name":        {pod.Namespace + "/" + pod.Name, "mall/web-3-place"},
		"the labels":      {pod.Labels, map[string]string{Label: "web", SetLabel: "web", "app.kubernetes.io/managed-by": "stsmigrate"}},
		"the owner":       {pod.OwnerReferences, []metav1.OwnerReference{p.Owner}},
		"the annotations": {pod.Annotations["inject"], "true"},
		"who places it":   {pod.Spec.SchedulerName, "other"},
		"its nodes":       {pod.Spec.NodeSelector, map[string]string{"disk": "ssd"}},
		"its tolerations": {len(pod.Spec.Tolerations), 1},
		"its host":        {pod.Spec.Hostname + "." + pod.Spec.Subdomain, "web-3.web"},
		"its account":     {pod.Spec.ServiceAccountName, "web"},
		"no token":        {token != nil && !*token, true},
		"its gate":        {len(pod.Spec.ReadinessGates), 1},
		"a deadline":      {*pod.Spec.ActiveDeadlineSeconds, int64(3600)},
		"ends at once":    {*pod.Spec.TerminationGracePeriodSeconds, int64(1)},
		"its class":       {pod.Spec.PriorityClassName, "high"},
		"the sidecar too": {pod.Spec.Containers[1].Image, "agent:1"},
		"as a container":  {pod.Spec.Containers[1].RestartPolicy == nil && pod.Spec.Containers[1].StartupProbe == nil, true},
		"what it runs":    {len(pod.Spec.InitContainers), 1},
		"of that image":   {pod.Spec.InitContainers[0].Image, "stsmigrate:1"},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: %v, expected %v", what, c.got, c.want)
		}
	}
}

// It asks for exactly as much as the pod: no more, or a quota or a node that is exactly full would say no to it alone.
func TestAPlaceholderTakesTheRoomOfItsOrdinal(t *testing.T) {
	for name, spec := range map[string]string{
		"everything":          everything,
		"nothing":             "containers: [{name: a}]",
		"two containers":      "containers: [{name: a, resources: {requests: {cpu: 1}}}, {name: b, resources: {requests: {memory: 1Gi}}}]",
		"a large first step":  "initContainers: [{name: i, resources: {requests: {memory: 8Gi, cpu: 3}, limits: {memory: 8Gi}}}]\ncontainers: [{name: a, resources: {requests: {memory: 1Gi, cpu: 1}, limits: {memory: 1Gi}}}]",
		"a sidecar and steps": "initContainers: [{name: i, resources: {requests: {cpu: 3}}}, {name: s, restartPolicy: Always, resources: {requests: {cpu: 1}}}, {name: j, resources: {requests: {cpu: 5}}}]\ncontainers: [{name: a, resources: {requests: {cpu: 1}}}]",
		"of the pod":          "resources: {requests: {cpu: 4}}\ncontainers: [{name: a, resources: {requests: {cpu: 1}}}]",
		"an overhead":         "overhead: {cpu: 250m}\ncontainers: [{name: a, resources: {requests: {cpu: 1}}}]",
		"next to nothing":     "containers: [{name: a, resources: {requests: {cpu: 5m, memory: 1Mi}}}]",
	} {
		p := web3(t, spec)
		p.Program.Image = "p:1"
		want := podresource.PodRequests(p.Pod, podresource.PodResourcesOptions{})
		if got := podresource.PodRequests(made(t, p), podresource.PodResourcesOptions{}); !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: it asks for %v, expected %v", name, got, want)
		}
		for _, c := range made(t, p).Spec.Containers {
			for r, limit := range c.Resources.Limits {
				if asks := c.Resources.Requests[r]; limit.Cmp(asks) < 0 {
					t.Errorf("%s: container %s may have %s of %s and asks for %s", name, c.Name, limit.String(), r, asks.String())
				}
			}
		}
	}
}

// It keeps away from the other placeholders of its set, or to them, as the pods do to one another.
func TestAPlaceholderKeepsTheRulesOfItsSet(t *testing.T) {
	const host, zone = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
	term := func(key, more string) string {
		return "[{topologyKey: " + key + ", labelSelector: {matchLabels: {app: web}}" + more + "}]"
	}
	apart := func(terms string) string {
		return "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " + terms + "}}"
	}
	together := func(terms string) string {
		return "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " + terms + "}}"
	}
	reach := func(expressions ...string) (out []corev1.NodeSelector) {
		for _, e := range expressions {
			var s corev1.NodeSelector
			if err := yaml.UnmarshalStrict([]byte("nodeSelectorTerms: "+e), &s); err != nil {
				t.Fatal(err)
			}
			out = append(out, s)
		}
		return out
	}
	for name, c := range map[string]struct {
		spec   string
		change func(*Place)
		want   string // its affinity
	}{
		"no rules":              {spec: "{}", want: "{}"},
		"apart":                 {spec: apart(term(host, "")), want: "apart(app=web; and placeholders)"},
		"apart from others":     {spec: apart("[{topologyKey: h, labelSelector: {matchLabels: {app: db}}}]"), want: "apart(app=db)"},
		"apart, elsewhere":      {spec: apart(term(host, ", namespaces: [shop]")), want: "apart(app=web)"},
		"apart, both":           {spec: apart(term(host, ", namespaces: [shop, mall]")), want: "apart(app=web; and placeholders)"},
		"apart, of one version": {spec: apart(term(host, ", matchLabelKeys: [version]")), want: "apart(app=web,version in (2); and placeholders)"},
		"apart, of others":      {spec: apart(term(host, ", mismatchLabelKeys: [version]")), want: "apart(app=web,version notin (2))"},
		"together":              {spec: together(term(zone, "")), want: "with(app=web)"},
		"together, the first":   {spec: together(term(zone, "")), change: func(p *Place) { p.Alone = true }, want: "{}"},
		"together, the second":  {spec: together(term(zone, "")), change: func(p *Place) { p.Alone, p.Others = true, true }, want: "with(placeholders)"},
		"with another":          {spec: together("[{topologyKey: z, labelSelector: {matchLabels: {app: db}}}]"), change: func(p *Place) { p.Alone = true }, want: "with(app=db)"},
		"a volume":              {spec: "{}", change: func(p *Place) { p.Reach = reach("[{matchExpressions: [{key: zone, operator: In, values: [a]}]}]") }, want: "nodes(zone In a)"},
		"two volumes": {spec: "{}", change: func(p *Place) {
			p.Reach = reach("[{matchExpressions: [{key: zone, operator: In, values: [a]}]}, {matchExpressions: [{key: zone, operator: In, values: [b]}]}]", "[{matchExpressions: [{key: rack, operator: Exists}]}]")
		}, want: "nodes(zone In a,rack Exists | zone In b,rack Exists)"},
		"its own": {spec: "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In, values: [ssd]}]}]}}}", change: func(p *Place) {
			p.Reach = reach("[{matchFields: [{key: metadata.name, operator: In, values: [node]}]}]")
		}, want: "nodes(disk In ssd,metadata.name In node)"},
		"full": {spec: "{}", change: func(p *Place) { p.Full = map[string][]string{zone: {"a", "b"}, host: {"n"}} }, want: "nodes(kubernetes.io/hostname NotIn n,topology.kubernetes.io/zone NotIn a b)"},
	} {
		p := web3(t, "containers: [{name: a}]\n"+strings.TrimPrefix(c.spec, "{}"))
		if c.change != nil {
			c.change(&p)
		}
		if got := said(made(t, p).Spec.Affinity); got != c.want {
			t.Errorf("%s: %s, expected %s", name, got, c.want)
		}
	}
	many := web3(t, "containers: [{name: a}]")
	two := "[{matchExpressions: [{key: a, operator: Exists}]}, {matchExpressions: [{key: b, operator: Exists}]}]"
	many.Reach = reach(two, two, two, two, two, two, two, two)
	if _, err := Make(many); err == nil || !strings.Contains(err.Error(), "pod web-3 and its volumes has more than 128 alternatives") {
		t.Errorf("%v", err)
	}
}

// A placeholder prefers the nodes that its pod will prefer: by default the scheduler spreads the pods of a set.
func TestAPlaceholderIsSpreadAsItsOrdinal(t *testing.T) {
	own := "topologySpreadConstraints: [{topologyKey: rack, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}]\n"
	for name, c := range map[string]struct {
		spec, want string
		like       *metav1.LabelSelector
	}{
		"by default":           {"", "kubernetes.io/hostname 3 ScheduleAnyway app=web; 1 away", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		"by rules of its own":  {own, "rack 1 ScheduleAnyway app=web; 0 away", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		"of a set without one": {"", "; 0 away", nil},
	} {
		p := web3(t, c.spec+"containers: [{name: a}]")
		p.Like = c.like
		pod := made(t, p)
		var all []string
		for _, s := range pod.Spec.TopologySpreadConstraints {
			all = append(all, fmt.Sprintf("%s %d %s %s", s.TopologyKey, s.MaxSkew, s.WhenUnsatisfiable, metav1.FormatLabelSelector(s.LabelSelector)))
		}
		away := 0
		if apart := pod.Spec.Affinity.PodAntiAffinity; apart != nil {
			away = len(apart.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if got := fmt.Sprintf("%s; %d away", strings.Join(all, ", "), away); got != c.want {
			t.Errorf("%s: %s, expected %s", name, got, c.want)
		}
	}
}

// said writes affinity in one line.
func said(a *corev1.Affinity) string {
	var out []string
	terms := func(what string, list []corev1.PodAffinityTerm) {
		var all []string
		for _, t := range list {
			if t.LabelSelector.MatchLabels[Label] == "web" {
				all = append(all, strings.Repeat("and ", min(1, len(all)))+"placeholders")
				continue
			}
			all = append(all, metav1.FormatLabelSelector(t.LabelSelector))
			if len(t.MatchLabelKeys)+len(t.MismatchLabelKeys) > 0 {
				all = append(all, "keys of its own labels")
			}
		}
		if len(all) > 0 {
			out = append(out, what+"("+strings.Join(all, "; ")+")")
		}
	}
	if a.PodAntiAffinity != nil {
		terms("apart", a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if a.PodAffinity != nil {
		terms("with", a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if a.NodeAffinity != nil {
		var all []string
		for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			var one []string
			for _, e := range slices.Concat(t.MatchExpressions, t.MatchFields) {
				one = append(one, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Key, e.Operator, strings.Join(e.Values, " "))))
			}
			all = append(all, strings.Join(one, ","))
		}
		out = append(out, "nodes("+strings.Join(all, " | ")+")")
	}
	if len(out) == 0 {
		return "{}"
	}
	return strings.Join(out, " ")
}

// With a class below all others, whatever needs the room may take it.
func TestAPlaceholderGivesWay(t *testing.T) {
	p := web3(t, everything)
	p.PriorityClass = "stsmigrate-placeholder"
	if s := made(t, p).Spec; s.PriorityClassName != p.PriorityClass || s.Priority != nil || s.PreemptionPolicy != nil {
		t.Errorf("%+v", s)
	}
	if s := made(t, p).Spec; len(s.InitContainers) != 0 || len(s.Volumes) != 4 {
		t.Errorf("a program comes from no image: %+v", s)
	}
	p = web3(t, "containers: [{name: a}]\nresourceClaims: [{name: gpu, resourceClaimTemplateName: g}]")
	p.Pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	pod, err := Make(p)
	if err != nil || pod.Spec.ResourceClaims != nil || pod.Spec.Containers[0].Resources.Claims != nil {
		t.Errorf("%v %+v", err, pod.Spec)
	}
}

func TestWhatAPlaceholderProves(t *testing.T) {
	waiting := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for name, c := range map[string]struct {
		node   string
		status corev1.PodStatus
		want   Proof
	}{
		"new": {want: Proof{Lacks: "scheduler default-scheduler has said nothing of it yet (no condition PodScheduled)"}},
		"unschedulable": {
			status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient cpu."}}},
			want:   Proof{Stuck: true, Why: "Unschedulable", Lacks: "no node takes it: 0/3 nodes are available: 3 Insufficient cpu."},
		},
		"gated": {
			status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulingGated"}}},
			want:   Proof{Stuck: true, Why: "SchedulingGated", Lacks: "no node takes it: SchedulingGated"},
		},
		"just scheduled": {node: "n", want: Proof{Node: "n", Lacks: "the kubelet of node n has not begun"}},
		"pulling": {
			node: "n", status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Image: "web:1", State: waiting("ContainerCreating", "")}}},
			want: Proof{Node: "n", Why: "ContainerCreating", Lacks: "on node n container web (web:1) waits: ContainerCreating"},
		},
		"no image": {
			node: "n", status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Image: "web:1", State: waiting("ImagePullBackOff", "not found")}}},
			want: Proof{Node: "n", Stuck: true, Why: "ImagePullBackOff", Lacks: "on node n container web (web:1) waits: ImagePullBackOff not found"},
		},
		"no key": {
			node: "n", status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Image: "web:1", State: waiting("CreateContainerConfigError", `couldn't find key k in Secret mall/s`)}}},
			want: Proof{Node: "n", Stuck: true, Why: "CreateContainerConfigError", Lacks: `on node n container web (web:1) waits: CreateContainerConfigError couldn't find key k in Secret mall/s`},
		},
		"the program has no image": {
			node: "n", status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: tools, Image: "p:1", State: waiting("ErrImagePull", "")}}, ContainerStatuses: []corev1.ContainerStatus{{Name: "web", State: waiting("PodInitializing", "")}}},
			want: Proof{Node: "n", Stuck: true, Unbrought: true, Why: "ErrImagePull", Lacks: "on node n container " + tools + " (p:1) waits: ErrImagePull"},
		},
		"the program fails": {
			node: "n", status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: tools, Image: "p:1", State: waiting("CrashLoopBackOff", "back-off")}}},
			want: Proof{Node: "n", Stuck: true, Unbrought: true, Why: "CrashLoopBackOff", Lacks: "on node n container " + tools + " (p:1) waits: CrashLoopBackOff back-off"},
		},
		"running":           {node: "n", status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "web", State: running}}}, want: Proof{Node: "n", Warm: true}},
		"without a program": {node: "n", status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "web", State: waiting("RunContainerError", "no such file")}}}, want: Proof{Node: "n", Warm: true}},
		"it is tried again": {node: "n", status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "web", State: waiting("CrashLoopBackOff", "")}}}, want: Proof{Node: "n", Warm: true}},
		"one of two":        {node: "n", status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "web", State: running}, {Name: "b", Image: "b:1", State: waiting("ContainerCreating", "")}}}, want: Proof{Node: "n", Why: "ContainerCreating", Lacks: "on node n container b (b:1) waits: ContainerCreating"}},
		"it runs":           {node: "n", status: corev1.PodStatus{Phase: corev1.PodRunning}, want: Proof{Node: "n", Warm: true}},
		"its program is none": {
			node: "n", status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}, ContainerStatuses: []corev1.ContainerStatus{{Name: "web", State: waiting("CrashLoopBackOff", "")}}},
			want: Proof{Node: "n", Warm: true},
		},
		"evicted":            {node: "n", status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory"}, want: Proof{Node: "n", Ended: true, Lacks: "it has ended: Evicted low on memory"}},
		"ended, nobody says": {node: "n", status: corev1.PodStatus{Phase: corev1.PodSucceeded}, want: Proof{Node: "n", Ended: true, Lacks: "it has ended: no reason is given"}},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: c.node, Containers: []corev1.Container{{Name: "web"}}}, Status: c.status}
		if got := Read(pod); got != c.want {
			t.Errorf("%s: %+v, expected %+v", name, got, c.want)
		}
	}
}

// The waiting program is one for Linux. The containers of other pods are told to run what they do not have.
func TestOnlyPodsOfLinuxGetTheProgram(t *testing.T) {
	for spec, want := range map[string]int{
		"containers: [{name: a}]":                                                      1,
		"os: {name: linux}\ncontainers: [{name: a}]":                                   1,
		"os: {name: windows}\ncontainers: [{name: a}]":                                 0,
		"nodeSelector: {kubernetes.io/os: windows}\ncontainers: [{name: a}]":           0,
		"nodeSelector: {kubernetes.io/os: linux, a: windows}\ncontainers: [{name: a}]": 1,
	} {
		p := web3(t, spec)
		p.Program.Image = "stsmigrate:1"
		s := made(t, p).Spec
		if len(s.InitContainers) != want || len(s.Volumes) != want || len(s.Containers[0].VolumeMounts) != want {
			t.Errorf("%s: %+v", spec, s)
		}
	}
}
