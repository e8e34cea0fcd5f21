package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// updating returns a set without replicas in namespace shop whose update is complete, and the revision
// before.
func updating(kind string, change func(*appsv1.StatefulSet)) []client.Object {
	yes, none, partition := true, int32(0), int32(2)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	set.Spec.Replicas, set.Spec.Selector = &none, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition}}
	set.Status.UpdateRevision = "web-b"
	if change != nil {
		change(set)
	}
	before := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-a", OwnerReferences: []metav1.OwnerReference{{UID: "u", Controller: &yes}}}, Revision: 1,
		Data: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web","was":"so"}}}}}`)},
	}
	if kind == plans.SliceKind {
		return []client.Object{v1alpha1.FromNative(set), before}
	}
	return []client.Object{set, before}
}

func TestAnUpdateIsSteeredAsWithKubectl(t *testing.T) {
	for typed, kind := range map[string]string{"web": plans.NativeKind, "sts/web": plans.NativeKind, "stss/web": plans.SliceKind} {
		on, config := serve(t, []string{"home"}, updating(kind, nil)...)
		now := func() *appsv1.StatefulSet {
			var set appsv1.StatefulSet
			var slice v1alpha1.StatefulSetSlice
			key, err := client.ObjectKey{Namespace: "shop", Name: "web"}, error(nil)
			if kind == plans.SliceKind {
				err = on.Get(t.Context(), key, &slice)
				set = *slice.Native()
			} else {
				err = on.Get(t.Context(), key, &set)
			}
			if err != nil {
				t.Fatal(err)
			}
			return &set
		}
		for _, c := range []struct {
			words, want string
			code        int
		}{
			{"status", kind + " shop/web is rolled out: 0 of 0 pods are of revision web-b", exitDone},
			{"pause", kind + " shop/web is paused: no pod is replaced for an update until `stsmigrate rollout resume " + typed + " -n shop --context home --kubeconfig " + config + "`", exitDone},
			{"pause", kind + " shop/web is paused already; nothing to do", exitDone},
			{"restart -y", kind + " shop/web is paused: resume it first (rollout resume)", exitError},
			{"resume", kind + " shop/web continues its update", exitDone},
			{"resume", kind + " shop/web is not paused; nothing to do", exitDone},
			{"restart", "--yes", exitError},
			{"restart -y", kind + " shop/web is restarted", exitDone},
			{"history", "web-a", exitDone},
			{"undo --to-revision 1 -y", kind + " shop/web has the template of revision 1 (web-a)", exitDone},
		} {
			words := strings.Fields(c.words)
			got := command(t, append(append([]string{"rollout", words[0], typed}, words[1:]...), "-n", "shop", "--kubeconfig", config)...)
			if got.code != c.code || !strings.Contains(got.out+got.errOut, c.want) {
				t.Errorf("rollout %s of %s: exit code %d, expected %d and %q\n%s%s", c.words, typed, got.code, c.code, c.want, got.out, got.errOut)
			}
			restarted := now().Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] != ""
			if want := strings.Contains(got.out, "is restarted") || c.words == "history"; restarted != want {
				t.Errorf("after rollout %s of %s the template says that it is restarted: %v", c.words, typed, restarted)
			}
		}
		if set := now(); set.Spec.Template.Labels["was"] != "so" || *set.Spec.UpdateStrategy.RollingUpdate.Partition != 2 || len(set.Annotations) > 0 {
			t.Errorf("%s: in the end it is %+v", typed, set)
		}
	}
}

// A dry run of a set that does not exist is an error, as the command is.
func TestADryRunNeedsItsSet(t *testing.T) {
	_, config := serve(t, []string{"home"})
	for _, verb := range []string{"pause", "resume", "restart"} {
		got := command(t, "rollout", verb, "web", "--dry-run=client", "-n", "shop", "--kubeconfig", config)
		if got.code != exitError || !strings.Contains(got.errOut, "web") {
			t.Errorf("rollout %s: %+v", verb, got)
		}
	}
}

func TestTheStatusOfAnUpdateIsAnExitCode(t *testing.T) {
	three := int32(3)
	for name, c := range map[string]struct {
		kind   string
		change func(*appsv1.StatefulSet)
		flags  string
		code   int
		out    []string
		errOut string
	}{
		"what is waited for": {plans.NativeKind, func(s *appsv1.StatefulSet) { s.Spec.Replicas = &three }, "--watch=false", exitDone, []string{"0 of 3 are available", "pod web-2 will be created"}, ""},
		"not for longer than that": {
			plans.NativeKind, func(s *appsv1.StatefulSet) { s.Spec.Replicas = &three }, "--timeout=1s", exitError,
			[]string{"pod web-2 will be created"},
			"the update of StatefulSet shop/web was not complete within 1s: pod web-0 will be created",
		},
		"a person is needed": {plans.SliceKind, nil, "", exitBlocked, nil, "StatefulSetSlice shop/web: no progress"},
		"it is moved":        {plans.NativeKind, func(s *appsv1.StatefulSet) { s.Annotations = map[string]string{plans.StampAnnotation: "tidy/1/2"} }, "", exitDone, []string{"is being moved by plan tidy", "is rolled out"}, ""},
		"many pods": {plans.NativeKind, func(s *appsv1.StatefulSet) {
			many := int32(30)
			s.Spec.Replicas = &many
		}, "--watch=false", exitDone, []string{"pod web-9 will be created", "and 20 more"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			objects := updating(c.kind, c.change)
			typed := "web"
			if slice, ok := objects[0].(*v1alpha1.StatefulSetSlice); ok {
				slice.Status.Conditions = []metav1.Condition{{Type: "Stalled", Status: metav1.ConditionTrue, Reason: "ProgressDeadlineExceeded", Message: "no progress"}}
				typed = "stss/web"
			}
			_, config := serve(t, []string{"home"}, objects...)
			got := command(t, append([]string{"rollout", "status", typed, "-n", "shop", "--kubeconfig", config}, strings.Fields(c.flags)...)...)
			if got.code != c.code || !strings.Contains(got.errOut, c.errOut) || c.errOut == "" && got.errOut != "" {
				t.Errorf("exit code %d, expected %d; %q", got.code, c.code, got.errOut)
			}
			for _, want := range c.out {
				if strings.Count(got.out, want) != 1 {
					t.Errorf("%q, expected %q in it once", got.out, want)
				}
			}
			if strings.Contains(got.out, "web-10 ") {
				t.Errorf("it names them all: %q", got.out)
			}
		})
	}
}
