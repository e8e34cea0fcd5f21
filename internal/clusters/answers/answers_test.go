package answers

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
)

type itself struct{ error }

func (itself) MayPass() bool { return true }

// The words are those of Kubernetes 1.36.
func TestWhatARefusalMeans(t *testing.T) {
	no := func(words string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-0", errors.New(words))
	}
	sent := func(words string) error {
		return &url.Error{Op: "Get", URL: "https://east/api", Err: errors.New(words)}
	}
	for name, c := range map[string]struct {
		err    error
		want   Meaning
		reason reasons.ID
	}{
		"nothing":               {nil, Unanswered, reasons.RequestRefusedByAPI},
		"no right":              {no(`User "system:serviceaccount:stsmigrate:orchestrator" cannot get resource "pods" in API group "" in the namespace "shop"`), Passing, reasons.RequestRefusedByAPI},
		"no roles yet":          {no(`RBAC: role.rbac.authorization.k8s.io "stsmigrate" not found`), Passing, reasons.RequestRefusedByAPI},
		"no admission yet":      {no("not yet ready to handle request"), Passing, reasons.RequestRefusedByAPI},
		"no sum of a quota yet": {no("status unknown for quota: all, resources: pods"), Passing, reasons.RequestRefusedByAPI},
		"other words":           {no("for a reason that nobody knows"), Passing, reasons.RequestRefusedByAPI},
		"a webhook":             {no(`admission webhook "a.b" denied the request: no`), Decided, reasons.RequestRefusedByAPI},
		"a policy":              {no("ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no"), Decided, reasons.RequestRefusedByAPI},
		"a quota":               {no("exceeded quota: all, requested: pods=1, used: pods=3, limited: pods=3"), Decided, reasons.RequestRefusedByAPI},
		"pod security":          {no(`violates PodSecurity "restricted:latest": privileged`), Decided, reasons.RequestRefusedByAPI},
		"a limit range":         {no("maximum memory usage per Container is 1Gi, but limit is 2Gi"), Decided, reasons.RequestRefusedByAPI},
		"the namespace goes":    {no("unable to create new content in namespace shop because it is being terminated"), Decided, reasons.RequestRefusedByAPI},
		"not valid":             {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web-0", nil), Decided, reasons.RequestRefusedByAPI},
		"a bad request":         {apierrors.NewBadRequest("no such field"), Decided, reasons.RequestRefusedByAPI},
		"no such kind":          {&meta.NoKindMatchError{}, Passing, reasons.RequestRefusedByAPI},
		"no such path":          {sent(ErrNoKind{"east", "/apis/a/v1/b"}.Error()), Unanswered, reasons.RequestRefusedByAPI},
		"no such path, wrapped": {&url.Error{Op: "Get", URL: "https://east", Err: ErrNoKind{"east", "/apis/a/v1/b"}}, Passing, reasons.RequestRefusedByAPI},
		"no such object":        {apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web-0"), Unanswered, reasons.RequestRefusedByAPI},
		"an unknown caller":     {apierrors.NewUnauthorized("Unauthorized"), Passing, reasons.CredentialsExpired},
		"no program for logins": {sent("getting credentials: exec: executable aws failed with exit code 255"), Passing, reasons.CredentialsExpired},
		"an old certificate":    {sent("remote error: tls: expired certificate"), Passing, reasons.CredentialsExpired},
		"no answer":             {sent("dial tcp: connection refused"), Unanswered, reasons.RequestRefusedByAPI},
		"too many requests":     {apierrors.NewTooManyRequests("later", 1), Unanswered, reasons.RequestRefusedByAPI},
		"etcd has no leader":    {apierrors.NewInternalError(errors.New("etcdserver: no leader")), Unanswered, reasons.RequestRefusedByAPI},
		"it says so itself":     {itself{errors.New("a check")}, Passing, reasons.RequestRefusedByAPI},
	} {
		for _, err := range []error{c.err, fmt.Errorf("reading pod web-0: %w", c.err)} {
			if err == nil || c.err == nil {
				err = c.err
			}
			if got, why := Of(err), Reason(err); got != c.want || why != c.reason {
				t.Errorf("%s: %d and %s, expected %d and %s: %v", name, got, why, c.want, c.reason, err)
			}
		}
	}
	if !meta.IsNoMatchError(ErrNoKind{}) || apierrors.IsNotFound(ErrNoKind{}) {
		t.Error("a kind that is not served is taken for an object that is gone")
	}
}
