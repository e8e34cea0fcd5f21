package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// Path is the URL path of the webhook.
const Path = "/validate-statefulsetslice"

// Validator implements admission.Validator.
type Validator struct {
	// Live reads from the API server and sends dry runs. It must not be a cache.
	Live client.Client
	// Off are the traits of the features that are switched off.
	Off core.Traits
}

var _ admission.Validator[*v1alpha1.StatefulSetSlice] = Validator{}

// ValidateCreate refuses a slice whose pods or claims cannot be created.
func (v Validator) ValidateCreate(ctx context.Context, s *v1alpha1.StatefulSetSlice) (admission.Warnings, error) {
	told := warnings(s)
	if w := v.namesake(ctx, s); w != "" {
		told = append(told, w)
	}
	errs := append(later(nil, s), gated(v.Off, nil, s.Spec)...)
	errs = append(errs, template(s.Spec)...)
	found, w := v.try(ctx, s)
	return append(told, w...), invalid(s, append(errs, found...))
}

// ValidateUpdate checks only what changed: a slice that was stored before this webhook
// existed can still be scaled (VA-7).
func (v Validator) ValidateUpdate(ctx context.Context, was, s *v1alpha1.StatefulSetSlice) (admission.Warnings, error) {
	if errs := later(was, s); len(errs) > 0 {
		return nil, invalid(s, errs)
	}
	if equality.Semantic.DeepEqual(was.Spec, s.Spec) {
		return nil, nil // only metadata changed, such as the finalizers of a deleted slice
	}
	told, errs := warnings(s), gated(v.Off, was, s.Spec)
	if !equality.Semantic.DeepEqual(was.Spec.VolumeClaimTemplates, s.Spec.VolumeClaimTemplates) {
		found, w := v.tryClaims(ctx, s)
		errs, told = append(errs, found...), append(told, w...)
		if s.Spec.VolumeClaimUpdatePolicy != v1alpha1.InPlace {
			told = append(told, "existing claims are left unchanged: volumeClaimUpdatePolicy InPlace expands them with their template")
		}
	}
	if equality.Semantic.DeepEqual(was.Spec.Template, s.Spec.Template) {
		return told, invalid(s, errs)
	}
	found, w := v.tryTemplate(ctx, s)
	return append(told, w...), invalid(s, append(append(errs, template(s.Spec)...), found...))
}

// ValidateDelete refuses the deletion of a protected slice, unless the deletion keeps its pods.
func (v Validator) ValidateDelete(ctx context.Context, s *v1alpha1.StatefulSetSlice) (admission.Warnings, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, err
	}
	if why := v.protected(ctx, s, request.Options.Raw); why != "" {
		return nil, apierrors.NewForbidden(v1alpha1.GroupVersion().WithResource("statefulsetslices").GroupResource(), s.Name, errors.New(why))
	}
	return nil, nil
}

func invalid(s *v1alpha1.StatefulSetSlice, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(v1alpha1.Kind().GroupKind(), s.Name, errs)
}

func (v Validator) namesake(ctx context.Context, s *v1alpha1.StatefulSetSlice) string {
	var other appsv1.StatefulSet
	if v.Live.Get(ctx, client.ObjectKeyFromObject(s), &other) != nil {
		return "" // it is only a warning; the controller reports pods of other owners (CL-10)
	}
	return overlap(s, &other)
}

// try validates the pod template and the claim templates by the API server: it creates a
// PodTemplate and claims as dry runs.
func (v Validator) try(ctx context.Context, s *v1alpha1.StatefulSetSlice) (field.ErrorList, []string) {
	errs, told := v.tryTemplate(ctx, s)
	found, w := v.tryClaims(ctx, s)
	return append(errs, found...), append(told, w...)
}

func (v Validator) tryClaims(ctx context.Context, s *v1alpha1.StatefulSetSlice) (errs field.ErrorList, told []string) {
	for k, t := range s.Spec.VolumeClaimTemplates {
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, GenerateName: "dry-run-", Labels: t.Labels, Annotations: t.Annotations}, Spec: t.Spec,
		}
		at := field.NewPath("spec", "volumeClaimTemplates").Index(k)
		if t.Name == "" {
			errs = append(errs, field.Required(at.Child("metadata", "name"), "the claims of the ordinals are named after it"))
		}
		found, w := v.tryOut(ctx, claim, at.String()+".")
		errs, told = append(errs, found...), append(told, w...)
	}
	return errs, told
}

// tryTemplate tries the template with what each pod has in addition. It uses the name of the last
// ordinal, which is the longest.
func (v Validator) tryTemplate(ctx context.Context, s *v1alpha1.StatefulSetSlice) (field.ErrorList, []string) {
	native := s.Native().Spec
	_, end := core.RangeOf(native, s.Spec.ReserveOrdinals)
	tried := Trial(s.Namespace, s.Spec.Template, native.VolumeClaimTemplates)
	name := fmt.Sprintf("%s-%d", s.Name, max(end-1, 0))
	tried.Template.Labels = maps.Clone(tried.Template.Labels)
	if tried.Template.Labels == nil {
		tried.Template.Labels = map[string]string{}
	}
	tried.Template.Labels[appsv1.StatefulSetPodNameLabel] = name
	tried.Template.Spec.Hostname, tried.Template.Spec.Subdomain = name, s.Spec.ServiceName
	return v.tryOut(ctx, tried, "spec.")
}

// tryOut creates an object as a dry run. Invalid fields are errors, under the names that
// they have in the slice. Any other failure, such as an exhausted quota, may be over when
// pods are created, and is a warning.
func (v Validator) tryOut(ctx context.Context, o client.Object, prefix string) (field.ErrorList, []string) {
	err := v.Live.Create(ctx, o, client.DryRunAll)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil, nil
	case !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil:
		return nil, []string{fmt.Sprintf("%s cannot be created at present: %v", strings.TrimSuffix(prefix, "."), err)}
	}
	var out field.ErrorList
	for _, c := range status.Status().Details.Causes {
		out = append(out, refusal(prefix+c.Field, c))
	}
	return out, nil
}

// refusal converts a cause back to the error that it was made from.
func refusal(at string, c metav1.StatusCause) *field.Error {
	e := &field.Error{Type: field.ErrorTypeInvalid, Field: at, BadValue: field.OmitValueType{}, Detail: c.Message}
	for _, kind := range []field.ErrorType{field.ErrorTypeRequired, field.ErrorTypeNotSupported, field.ErrorTypeForbidden, field.ErrorTypeDuplicate, field.ErrorTypeNotFound, field.ErrorTypeInvalid} {
		if rest, found := strings.CutPrefix(c.Message, kind.String()); found {
			e.Type, e.Detail = kind, strings.TrimPrefix(rest, ": ")
		}
	}
	return e
}
