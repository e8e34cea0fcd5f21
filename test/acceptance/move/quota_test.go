package move_test

import (
	"context"
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/plans"
)

func TestWhatTheDestinationDoesNotAllowIsRefused(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		ns := s.destination.namespace
		for _, c := range []refusal{
			{name: "a quota for fewer pods", prepare: quota("pods", "2"), code: blocked, says: []string{
				"FAIL quota: ResourceQuota " + ns + "/limit: pods: 2 of 2 are left, and the 3 ordinals that are to come need 3", "raise it by 1: kubectl --", " -n " + ns + " edit resourcequota limit",
			}},
			{name: "a quota that ends at the last claim", prepare: quota("requests.storage", "5Gi"), code: blocked, says: []string{"requests.storage: 5Gi of 5Gi are left, and the 3 ordinals that are to come need 6Gi", "raise it by 1Gi"}},
			{name: "a quota for the class", prepare: quota("shared.storageclass.storage.k8s.io/persistentvolumeclaims", "5"), code: blocked, says: []string{"shared.storageclass.storage.k8s.io/persistentvolumeclaims: 5 of 5 are left, and the 3 ordinals that are to come need 6"}},
			{name: "a quota for what pods do not ask for", prepare: quota("requests.cpu", "9"), code: blocked, says: []string{"FAIL pod-accepted", "must specify requests.cpu"}},
			{name: "a quota for objects", prepare: quota("count/statefulsets.apps", "0"), code: blocked, says: []string{"count/statefulsets.apps: 0 of 0 are left"}},
			{name: "pods that are too small", prepare: limits(corev1.LimitTypePod, corev1.ResourceMemory, "64Mi", ""), code: blocked, says: []string{"FAIL pod-accepted", "minimum memory usage per Pod is 64Mi", "LimitRange"}},
			{name: "claims that are too large", prepare: limits(corev1.LimitTypePersistentVolumeClaim, corev1.ResourceStorage, "", "512Mi"), code: blocked, says: []string{"FAIL claims-accepted: claim " + ns + "/data-web-0", "maximum storage usage per PersistentVolumeClaim is 512Mi"}},
			{name: "pods that are not restricted", prepare: func(s *migration) func() { return s.secured("enforce") }, code: blocked, says: []string{"FAIL pod-accepted", `violates PodSecurity "restricted:latest"`, "allowPrivilegeEscalation"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				s.t = t
				s.refuses(c)
			})
		}
		t.Run("a patch makes the pods what is demanded", func(t *testing.T) {
			s.t = t
			defer s.secured("enforce")()
			run(t, s.planArgs("--patch", s.file(restricted))...).expect(t, done, "securityContext")
		})
		t.Run("warnings do not block", func(t *testing.T) {
			s.t = t
			defer s.secured("warn")()
			run(t, s.planArgs()...).expect(t, done, "WARN pod-accepted", `would violate PodSecurity "restricted:latest"`)
		})
		t.Run("a quota that is just large enough", func(t *testing.T) {
			s.t = t
			mend := quota("pods", "3")(s)
			run(t, s.planArgs()...).expect(t, done)
			run(t, s.applyArgs()...).expect(t, done, "moved: 3 ordinals")
			run(t, s.args("abort")...).expect(t, done, "aborted")
			mend()
		})
		s.t = t
	})
}

const restricted = `
spec:
  template:
    spec:
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers: [{name: web, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
`

// quota limits one resource of the destination. The quota is in force when the returned function returns.
func quota(name corev1.ResourceName, hard string) func(*migration) func() {
	return func(s *migration) func() {
		s.t.Helper()
		q := &corev1.ResourceQuota{ObjectMeta: s.destination.named("limit"), Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: resource.MustParse(hard)}}}
		mend := s.put(s.destination, q)
		s.eventually("the quota is counted", func(ctx context.Context) bool {
			return s.destination.Get(ctx, client.ObjectKeyFromObject(q), q) == nil && len(q.Status.Used) > 0
		})
		return mend
	}
}

func limits(kind corev1.LimitType, name corev1.ResourceName, least, most string) func(*migration) func() {
	return func(s *migration) func() {
		s.t.Helper()
		item := corev1.LimitRangeItem{Type: kind}
		if least != "" {
			item.Min = corev1.ResourceList{name: resource.MustParse(least)}
		}
		if most != "" {
			item.Max = corev1.ResourceList{name: resource.MustParse(most)}
		}
		mend := s.put(s.destination, &corev1.LimitRange{ObjectMeta: s.destination.named("limit"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}})
		claim := newClaim("trial", "shared")
		claim.Namespace = s.destination.namespace
		s.eventually("the limit is in force", func(ctx context.Context) bool {
			if kind == corev1.LimitTypePod {
				return s.refused(ctx, trial(s.destination))
			}
			return s.refused(ctx, &claim)
		})
		return mend
	}
}

// secured requires restricted pods in the destination's namespace.
func (s *migration) secured(mode string) func() {
	s.t.Helper()
	label := func(value string) {
		o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.destination.namespace}}
		patch := `{"metadata":{"labels":{"pod-security.kubernetes.io/` + mode + `":` + value + `}}}`
		if err := s.destination.Patch(s.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			s.t.Fatal(err)
		}
	}
	label(`"restricted"`)
	if mode == "enforce" {
		s.eventually("the namespace is restricted", func(ctx context.Context) bool { return s.refused(ctx, trial(s.destination)) })
	}
	return func() {
		label("null")
		s.eventually("the namespace is open again", func(ctx context.Context) bool { return !s.refused(ctx, trial(s.destination)) })
	}
}

func trial(on *end) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: on.named("trial"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "trial", Image: "trial"}}}}
}

func (s *migration) refused(ctx context.Context, o client.Object) bool {
	return apierrors.IsForbidden(s.destination.Create(ctx, o, client.DryRunAll))
}

// An account with only the rights that the move needs can move. Requests that only the reports need are
// refused without effect.
func TestRightsThatOnlyTheReportsNeedAreNotRequired(t *testing.T) {
	t.Parallel()
	s := newMigration(t, rebind, options{replicas: 1, noBudget: true})
	const none, off = "--placeholder", "off" // a plan that takes places needs a right that the reports use too
	s.planned(none, off)
	raw, err := os.ReadFile(s.planFile)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plans.DecodePlan(raw)
	if err != nil {
		t.Fatal(err)
	}
	s.permit(slices.Concat(access.Rights(p, plans.Source), access.Rights(p, plans.Destination), access.ForRecords()))
	stranger := s.stranger()
	run(t, with(s.planArgs(none, off), "--kubeconfig", stranger)...).expect(t, done,
		"WARN pod-accepted", "you may not create pods there", "WARN quota", "you may not look at resourcequotas", "WARN rbac", "you may not look at rolebindings")
	run(t, with(s.applyArgs(), "--kubeconfig", stranger)...).expect(t, done, "moved: 1 ordinals")
	run(t, with(s.args("finalize"), "--kubeconfig", stranger)...).expect(t, done, "finalized")
}

// permit grants these rights to the account of the source's set.
func (s *migration) permit(rights []part.Right) {
	s.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.source.namespace + "-mover"}}
	for _, r := range rights {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: r.Verbs})
	}
	s.create(s.source, role)
	s.create(s.source, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.source.namespace, Name: "web"}},
	})
}
