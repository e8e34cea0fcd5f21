package admission

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// slice returns a slice of three pods from ordinal 2, with more in its spec.
func slice(t *testing.T, more string) *v1alpha1.StatefulSetSlice {
	t.Helper()
	s := &v1alpha1.StatefulSetSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	for _, text := range []string{
		`{replicas: 3, ordinals: {start: 2}, selector: {matchLabels: {app: web}}, updateStrategy: {type: RollingUpdate}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}`, more,
	} {
		if err := yaml.Unmarshal([]byte(text), &s.Spec); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	return s
}

// validator returns a Validator whose API server returns answer for each dry run.
func validator(answer error, there ...client.Object) Validator {
	scheme := runtime.NewScheme()
	_ = clientscheme.AddToScheme(scheme)
	return Validator{Live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(there...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.CreateOption) error {
			var o client.CreateOptions
			if o.ApplyOptions(opts); len(o.DryRun) == 0 {
				return errors.New("it is made")
			}
			return answer
		},
	}).Build()}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		`{}`: "",
		`{updateStrategy: {rollingUpdate: {maxUnavailable: 2}}}`:                                                    "",
		`{updateStrategy: {rollingUpdate: {maxUnavailable: 3}}}`:                                                    "MU-9 961-05 961-55: maxUnavailable 3 lets an update take down all 3 pods at once",
		`{updateStrategy: {rollingUpdate: {maxUnavailable: 100%}}}`:                                                 "MU-9: maxUnavailable 100% lets an update take down all 3 pods",
		`{updateStrategy: {rollingUpdate: {maxUnavailable: 2, partition: 4}}}`:                                      "MU-9 961-06: maxUnavailable 2 is more than the 1 pods that the partition",
		`{replicas: 1, updateStrategy: {rollingUpdate: {maxUnavailable: 1}}}`:                                       "",
		`{replicas: 0, updateStrategy: {rollingUpdate: {maxUnavailable: 5, partition: 9}}}`:                         "",
		`{updateStrategy: {rollingUpdate: {partition: 2}}}`:                                                         "",
		`{updateStrategy: {rollingUpdate: {partition: 5}}}`:                                                         "", // PT-5: it freezes all pods
		`{updateStrategy: {rollingUpdate: {partition: 1}}}`:                                                         "PT-5 3335-06: partition 1 is no ordinal of the range 2..4",
		`{updateStrategy: {type: EnforcedRollingUpdate, enforcedRollingUpdate: {partition: 6}}}`:                    "PT-5: partition 6 is no ordinal",
		`{revisionHistoryLimit: -1}`:                                                                                "RV-7: revisionHistoryLimit -1 keeps every",
		`{updateStrategy: {type: EnforcedRollingUpdate}}`:                                                           "",
		`{template: {spec: {volumes: [{name: tmp, emptyDir: {}}]}}}`:                                                "",
		`{updateStrategy: {evict: true}}`:                                                                           "",
		`{updateStrategy: {type: OnDelete, evict: true}}`:                                                           ": evict has no meaning for OnDelete",
		`{updateStrategy: {type: EnforcedRollingUpdate}, template: {spec: {volumes: [{name: tmp, emptyDir: {}}]}}}`: "3541-43: EnforcedRollingUpdate deletes pods that are not available, and volume tmp",
	} {
		rule, text, _ := strings.Cut(want, ": ")
		got, err := validator(nil).ValidateCreate(t.Context(), slice(t, spec))
		if err != nil || len(got) != min(len(want), 1) || want != "" && !strings.HasPrefix(got[0], text) {
			t.Errorf("%s %s: got %q, %v; expected %q", rule, spec, got, err, text)
		}
	}
}

// CL-11: the other set would keep the pods that the slice needs.
func TestWarnsOfAStatefulSetOfTheSameName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start, n int32
		leaving  bool
		want     string
	}{
		"before the range": {0, 2, false, ""},
		"behind the range": {5, 2, false, ""},
		"in the range":     {0, 4, false, "the same pods web-2 to web-3"},
		"and leaves pods":  {0, 4, true, ""},
	} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: appsv1.StatefulSetSpec{Replicas: &c.n, Ordinals: &appsv1.StatefulSetOrdinals{Start: c.start}}}
		if c.leaving {
			set.DeletionTimestamp, set.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{metav1.FinalizerOrphanDependents}
		}
		got, err := validator(nil, set).ValidateCreate(t.Context(), slice(t, "{}"))
		if said := strings.Join(got, ""); err != nil || (c.want == "") != (said == "") || !strings.Contains(said, c.want) {
			t.Errorf("%s: %q, %v", name, said, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		`{selector: {matchLabels: {app: other}}}`:                          "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: spec.selector (app=other) does not select pods with these labels",
		`{selector: {matchLabels: null}}`:                                  "spec.selector: Required value: an empty selector would select every pod",
		`{selector: {matchExpressions: [{key: a, operator: Unsure}]}}`:     "spec.selector: Invalid value",
		`{template: {spec: {restartPolicy: Never}}}`:                       "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
		`{template: {spec: {activeDeadlineSeconds: 5}}}`:                   "spec.template.spec.activeDeadlineSeconds: Forbidden",
		`{volumeClaimTemplates: [{spec: {accessModes: [ReadWriteOnce]}}]}`: "spec.volumeClaimTemplates[0].metadata.name: Required value",
	} {
		if _, err := validator(nil).ValidateCreate(t.Context(), slice(t, spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("VA-4: %s: got %v, expected %q", spec, err, want)
		}
	}
}

// Errors of the API server about a template name the field of the slice.
func TestWhatTheAPIServerRefusesIsRefused(t *testing.T) {
	t.Parallel()
	invalid := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PodTemplate").GroupKind(), "x", nil)
	invalid.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "FieldValueRequired", Field: "template.spec.containers[0].image", Message: "Required value"}}
	if _, err := validator(invalid).ValidateCreate(t.Context(), slice(t, "{}")); err == nil || !strings.Contains(err.Error(), "spec.template.spec.containers[0].image: Required value") {
		t.Error(err)
	}
	for _, err := range []error{apierrors.NewForbidden(corev1.Resource("podtemplates"), "x", errors.New("exceeded quota")), apierrors.NewTooManyRequestsError("slow down"), errors.New("no route to host")} {
		told, refused := validator(err).ValidateCreate(t.Context(), slice(t, "{}"))
		if refused != nil || len(told) != 1 || !strings.Contains(told[0], "spec cannot be created at present: ") {
			t.Errorf("%v: %q, %v", err, told, refused)
		}
	}
}

// VA-7: a stored slice that is invalid can be scaled. It is refused only where it changes.
func TestUpdatesAreLookedAtWhereTheyChange(t *testing.T) {
	t.Parallel()
	wrong := `{template: {spec: {restartPolicy: Never}}}`
	was, next := slice(t, wrong), slice(t, wrong)
	next.Spec.Replicas = new(int32(5))
	if told, err := validator(errors.New("not asked")).ValidateUpdate(t.Context(), was, next); err != nil || len(told) != 0 {
		t.Errorf("%q, %v", told, err)
	}
	next.Spec.Template.Labels["b"] = "c"
	if _, err := validator(nil).ValidateUpdate(t.Context(), was, next); err == nil {
		t.Error("no error")
	}
	loud := slice(t, `{revisionHistoryLimit: -1}`)
	if told, err := validator(nil).ValidateUpdate(t.Context(), loud, loud); err != nil || len(told) != 0 {
		t.Errorf("nothing has changed: %q, %v", told, err)
	}
}

// 3541-26: a field that is not known is refused, except in slices that already have it.
func TestFieldsThatAreNotKnownAreRefused(t *testing.T) {
	t.Parallel()
	plain, strange := slice(t, "{}"), slice(t, "{}")
	strange.Unknown = []string{"spec.later"}
	scaled := strange.DeepCopy()
	scaled.Spec.Replicas = new(int32(5))
	for name, c := range map[string]struct {
		err     error
		refused bool
	}{
		"created":    {second(validator(nil).ValidateCreate(t.Context(), strange)), true},
		"added":      {second(validator(nil).ValidateUpdate(t.Context(), plain, strange)), true},
		"there":      {second(validator(nil).ValidateUpdate(t.Context(), strange, scaled)), false},
		"taken away": {second(validator(nil).ValidateUpdate(t.Context(), strange, plain)), false},
	} {
		if (c.err != nil) != c.refused || c.refused && !strings.Contains(c.err.Error(), "spec.later: Forbidden: the slice controller of this cluster does not know this field") {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

// 961-41, ER-19: a feature that is switched off is refused, except for slices that already use it.
func TestFeaturesThatAreOff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule          string
		off           core.Traits
		without, with string
		want          string
	}{
		{"961-41", core.Traits{OneAtATime: true}, `{updateStrategy: {rollingUpdate: {maxUnavailable: 1}}}`, `{updateStrategy: {rollingUpdate: {maxUnavailable: 2}}}`, "spec.updateStrategy.rollingUpdate.maxUnavailable: Forbidden: the feature MaxUnavailableStatefulSet is switched off"},
		{"ER-19 3541-24", core.Traits{NotEnforced: true}, `{updateStrategy: {type: OnDelete}}`, `{updateStrategy: {type: EnforcedRollingUpdate}}`, "spec.updateStrategy.type: Forbidden: the feature EnforcedRollingUpdateInStatefulSet is switched off"},
	} {
		off, on := validator(nil), validator(nil)
		off.Off = c.off
		without, with := slice(t, c.without), slice(t, c.with)
		again := with.DeepCopy()
		again.Spec.Replicas = new(int32(7))
		for what, refused := range map[string]struct {
			err  error
			want bool
		}{
			"made":          {second(off.ValidateCreate(t.Context(), with)), true},
			"made without":  {second(off.ValidateCreate(t.Context(), without)), false},
			"begun":         {second(off.ValidateUpdate(t.Context(), without, with)), true},
			"kept":          {second(off.ValidateUpdate(t.Context(), with, again)), false},
			"given up":      {second(off.ValidateUpdate(t.Context(), with, without)), false},
			"made when on":  {second(on.ValidateCreate(t.Context(), with)), false},
			"begun when on": {second(on.ValidateUpdate(t.Context(), without, with)), false},
		} {
			if (refused.err != nil) != refused.want || refused.want && !strings.Contains(refused.err.Error(), c.want) {
				t.Errorf("%s: %s: %v", c.rule, what, refused.err)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }
