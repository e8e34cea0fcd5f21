package pods

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// amounts returns a demand with its quantities as strings.
func amounts(d demand) map[string]string {
	out := map[string]string{}
	for name, q := range d {
		out[string(name)] = q.String()
	}
	return out
}

func TestWhatAPodTakesFromAQuota(t *testing.T) {
	one := map[string]string{"pods": "1", "count/pods": "1"}
	with := func(more map[string]string) map[string]string {
		for k, v := range one {
			more[k] = v
		}
		return more
	}
	tests := map[string]struct {
		spec string
		want map[string]string
	}{
		"nothing but itself": {"containers: [{name: a}]", one},
		"the sum of its containers": {
			"containers: [{name: a, resources: {requests: {cpu: 100m, memory: 1Gi}, limits: {cpu: '1'}}}, {name: b, resources: {requests: {cpu: 200m}}}]",
			with(map[string]string{"requests.cpu": "300m", "cpu": "300m", "requests.memory": "1Gi", "memory": "1Gi", "limits.cpu": "1"}),
		},
		"its initialization, if that is more": {
			"initContainers: [{name: i, resources: {requests: {cpu: '2'}}}, {name: j, resources: {requests: {cpu: '1', memory: 1Gi}}}]\ncontainers: [{name: a, resources: {requests: {cpu: 100m, memory: 2Gi}}}]",
			with(map[string]string{"requests.cpu": "2", "cpu": "2", "requests.memory": "2Gi", "memory": "2Gi"}),
		},
		"its sidecars all the time": {
			"initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: '1'}}}, {name: i, resources: {requests: {cpu: '3'}}}]\ncontainers: [{name: a, resources: {requests: {cpu: '2'}}}]",
			with(map[string]string{"requests.cpu": "4", "cpu": "4"}),
		},
		"its own total": {
			"resources: {requests: {cpu: '5'}}\ncontainers: [{name: a, resources: {requests: {cpu: '1'}}}]",
			with(map[string]string{"requests.cpu": "5", "cpu": "5"}),
		},
		"what its runtime takes": {
			"overhead: {cpu: 50m, memory: 1Gi}\ncontainers: [{name: a, resources: {requests: {cpu: 100m}}}]",
			with(map[string]string{"requests.cpu": "150m", "cpu": "150m"}),
		},
		"devices by one name only": {
			"containers: [{name: a, resources: {requests: {example.com/gpu: '2'}, limits: {example.com/gpu: '2'}}}]",
			with(map[string]string{"requests.example.com/gpu": "2", "limits.example.com/gpu": "2"}),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: planstest.Parsed[corev1.PodSpec](t, tt.spec)}
			if diff := cmp.Diff(tt.want, amounts(podDemand(pod))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAClaimTakesFromAQuota(t *testing.T) {
	c := &corev1.PersistentVolumeClaim{Spec: planstest.Parsed[corev1.PersistentVolumeClaimSpec](t, "{storageClassName: fast, resources: {requests: {storage: 10Gi}}}")}
	want := map[string]string{
		"persistentvolumeclaims": "1", "count/persistentvolumeclaims": "1", "requests.storage": "10Gi",
		"fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1", "fast.storageclass.storage.k8s.io/requests.storage": "10Gi",
	}
	if diff := cmp.Diff(want, amounts(claimDemand(c))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhichQuotasAreAboutThePods(t *testing.T) {
	const greedy, modest, high = "containers: [{name: a, resources: {limits: {cpu: '1'}}}]", "containers: [{name: a}]", "{priorityClassName: high, containers: [{name: a}]}"
	tests := map[string]struct {
		quota, pod string
		matches    bool
		puzzling   string
	}{
		"no scope":                {"{}", modest, true, ""},
		"terminating":             {"scopes: [Terminating]", modest, false, ""},
		"not terminating":         {"scopes: [NotTerminating]", modest, true, ""},
		"best effort":             {"scopes: [BestEffort]", modest, true, ""},
		"best effort, greedy":     {"scopes: [BestEffort]", greedy, false, ""},
		"not best effort":         {"scopes: [NotBestEffort]", greedy, true, ""},
		"both must match":         {"scopes: [NotTerminating, NotBestEffort]", modest, false, ""},
		"of the class":            {"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [low, high]}]}", high, true, ""},
		"of another class":        {"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [low]}]}", high, false, ""},
		"not of the class":        {"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: NotIn, values: [high]}]}", high, false, ""},
		"of any class":            {"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}]}", high, true, ""},
		"of any class, has none":  {"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}]}", modest, false, ""},
		"of no class":             {"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: DoesNotExist}]}", modest, true, ""},
		"one that is not known":   {"scopes: [CrossNamespacePodAffinity]", modest, false, "CrossNamespacePodAffinity"},
		"of a class, by its list": {"scopes: [PriorityClass]", high, true, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			q := &corev1.ResourceQuota{Spec: planstest.Parsed[corev1.ResourceQuotaSpec](t, tt.quota)}
			matches, puzzling := covers(q, &corev1.Pod{Spec: planstest.Parsed[corev1.PodSpec](t, tt.pod)})
			if matches != tt.matches || puzzling != tt.puzzling {
				t.Errorf("matches %v, puzzling %q, expected %v and %q", matches, puzzling, tt.matches, tt.puzzling)
			}
		})
	}
}

func TestWhatAQuotaIsShortOf(t *testing.T) {
	q := &corev1.ResourceQuota{}
	q.Spec.Hard = planstest.Parsed[corev1.ResourceList](t, "{pods: '10', requests.cpu: '2', requests.storage: 10Gi, services: '0'}")
	q.Status.Used = planstest.Parsed[corev1.ResourceList](t, "{pods: '5', requests.cpu: 500m}")
	need := demand{}
	need.add(demand(planstest.Parsed[corev1.ResourceList](t, "{pods: '1', requests.cpu: 500m, requests.storage: 2Gi, services: '0', limits.cpu: '9'}")), 5)
	var got [][4]string
	for _, s := range short(q, need) {
		got = append(got, [4]string{string(s.name), s.left.String(), s.need.String(), s.missing.String()})
	}
	want := [][4]string{{"requests.cpu", "1500m", "2500m", "1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if hard := q.Spec.Hard["requests.cpu"]; hard.String() != "2" {
		t.Errorf("the quota itself was changed to %s", hard.String())
	}
}
