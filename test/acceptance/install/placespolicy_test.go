package install_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/placeholder"
)

// placed returns a placeholder as the product makes it.
func placed(t *testing.T) *corev1.Pod {
	t.Helper()
	of := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "places", Name: "web-3"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "web", Image: "web:1"}},
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-3"}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimFor(volume("x", corev1.PersistentVolumeReclaimRetain, nil)).Spec}}}},
		},
	}}
	of.Spec.Volumes[1].Ephemeral.VolumeClaimTemplate.Spec.VolumeName = ""
	pod, err := placeholder.Make(placeholder.Place{Pod: of, Name: "web-3-place", Plan: "web", Set: "web", Tag: "t", Deadline: 7200, Program: placeholder.Program{Image: "stsmigrate-placeholder:1", Targets: []string{"vault.infra.svc:8200"}}})
	if err != nil {
		t.Fatal(err)
	}
	pod.Annotations[stamp] = "web/1/7"
	return pod
}

// anchored returns the anchor of a place as the product makes it.
func anchored(t *testing.T, image string) *corev1.Pod {
	t.Helper()
	of := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "places", Name: "web-3"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}}
	place := placeholder.Place{Pod: of, Plan: "web", Set: "web", Deadline: 7200, Program: placeholder.Program{Image: image}}
	pod, err := placeholder.Anchor(place, "web-3-anchor", &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}})
	if err != nil {
		t.Fatal(err)
	}
	pod.Annotations = map[string]string{stamp: "web/1/7"}
	return pod
}

// An orchestrator's account makes no other pods than placeholders that do nothing, and deletes no others but those of sets.
func TestPoliciesLetAnOrchestratorMakePlaceholdersAlone(t *testing.T) {
	policed(t)
	owner, it := as(t, ""), as(t, account)
	if err := owner.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "places"}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	plain := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "places", Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "places", Name: "default"}} // its controller may be late
	if err := owner.Create(t.Context(), account); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := it.Create(ctx, labelled(plain("web-9-place")), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "stsmigrate-placeholders"), nil
	})
	if err != nil {
		t.Fatalf("the policy of placeholders is not in force: %v", err)
	}
	yes := true
	for name, c := range map[string]struct {
		who     client.Client
		change  func(*corev1.Pod) *corev1.Pod
		lasting bool   // no dry run
		refused string // "" is allowed
	}{
		"a placeholder":            {who: it},
		"without a program":        {who: it, change: func(p *corev1.Pod) *corev1.Pod { p.Spec.InitContainers = nil; return p }},
		"an anchor":                {who: it, change: func(*corev1.Pod) *corev1.Pod { return anchored(t, "stsmigrate-placeholder:1") }},
		"one without a program":    {who: it, change: func(*corev1.Pod) *corev1.Pod { return anchored(t, "") }},
		"an anchor of another set": {who: it, change: func(*corev1.Pod) *corev1.Pod { p := anchored(t, ""); p.Name = "db-3-anchor"; return p }, refused: "is not named as the placeholder"},
		"an anchor named a place":  {who: it, change: func(*corev1.Pod) *corev1.Pod { p := anchored(t, ""); p.Name = "web-3-place"; return p }, refused: "is not named as the placeholder"},
		"any pod by anybody else":  {who: as(t, "eve"), change: func(*corev1.Pod) *corev1.Pod { return plain("a") }},
		"any pod is tried":         {who: it, change: func(*corev1.Pod) *corev1.Pod { return plain("a") }},
		"and not made":             {who: it, change: func(*corev1.Pod) *corev1.Pod { return plain("a") }, lasting: true, refused: "is no placeholder"},
		"of another name":          {who: it, change: func(p *corev1.Pod) *corev1.Pod { p.Name = "web-3"; return p }, refused: "is not named as the placeholder"},
		"of another set":           {who: it, change: func(p *corev1.Pod) *corev1.Pod { p.Name = "db-3-place"; return p }, refused: "is not named as the placeholder"},
		"of any name":              {who: it, change: func(p *corev1.Pod) *corev1.Pod { p.Name, p.GenerateName = "", "web-3-place"; return p }, refused: "is not named as the placeholder"},
		"without a stamp":          {who: it, change: func(p *corev1.Pod) *corev1.Pod { delete(p.Annotations, stamp); return p }, refused: "has no stamp of a plan"},
		"with a claim": {who: it, change: func(p *corev1.Pod) *corev1.Pod {
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-db-0"}}
			return p
		}, refused: "would mount a claim"},
		"with a directory of its node": {who: it, change: func(p *corev1.Pod) *corev1.Pod {
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
			return p
		}, refused: "would reach into its node"},
		"with the processes of its node": {who: it, change: func(p *corev1.Pod) *corev1.Pod { p.Spec.HostPID = true; return p }, refused: "would reach into its node"},
		"privileged": {who: it, change: func(p *corev1.Pod) *corev1.Pod {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes}
			return p
		}, refused: "would reach into its node"},
		"with a token":                          {who: it, change: func(p *corev1.Pod) *corev1.Pod { p.Spec.AutomountServiceAccountToken = &yes; return p }, refused: "would have a token"},
		"with whatever its account says":        {who: it, change: func(p *corev1.Pod) *corev1.Pod { p.Spec.AutomountServiceAccountToken = nil; return p }, refused: "would have a token"},
		"for ever":                              {who: it, change: func(p *corev1.Pod) *corev1.Pod { p.Spec.ActiveDeadlineSeconds = nil; return p }, refused: "without a deadline"},
		"with a program of its image":           {who: it, change: func(p *corev1.Pod) *corev1.Pod { p.Spec.Containers[0].Command = nil; return p }, refused: "would run another program"},
		"with another program":                  {who: it, change: func(p *corev1.Pod) *corev1.Pod { p.Spec.Containers[0].Command = []string{"sh"}; return p }, refused: "would run another program"},
		"with another program at its beginning": {who: it, change: func(p *corev1.Pod) *corev1.Pod { p.Spec.InitContainers[0].Command = []string{"sh"}; return p }, refused: "would run another program"},
		"with a program of a probe": {who: it, change: func(p *corev1.Pod) *corev1.Pod {
			p.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh"}}}}
			return p
		}, refused: "would run another program"},
	} {
		pod := placed(t)
		if c.change != nil {
			pod = c.change(pod)
		}
		var opts []client.CreateOption
		if !c.lasting {
			opts = append(opts, client.DryRunAll)
		}
		said(t, name, c.who.Create(t.Context(), pod, opts...), c.refused)
	}
	for name, c := range map[string]struct {
		change  func(*corev1.Pod)
		refused string
	}{
		"a placeholder": {change: func(p *corev1.Pod) { p.Labels = map[string]string{placeholder.Label: "web"} }},
		"a pod of a set": {change: func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "u", Controller: &yes}}
		}},
		"a pod of another": {change: func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u", Controller: &yes}}
		}, refused: "deletes no others"},
		"a pod of nobody": {change: func(*corev1.Pod) {}, refused: "deletes no others"},
	} {
		pod := plain("to-go-" + strings.ReplaceAll(name, " ", "-"))
		c.change(pod)
		if err := owner.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		said(t, "deleting "+name, it.Delete(t.Context(), pod, client.DryRunAll), c.refused)
		if err := owner.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// labelled gives a pod the label of a placeholder, and nothing else of one.
func labelled(p *corev1.Pod) *corev1.Pod {
	p.Labels = map[string]string{placeholder.Label: "web"}
	return p
}

func said(t *testing.T, name string, err error, refused string) {
	t.Helper()
	switch {
	case refused == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case refused != "" && (err == nil || !strings.Contains(err.Error(), refused)):
		t.Errorf("%s: %v, expected it to be refused with %q", name, err, refused)
	}
}
