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

// Path is where the API server finds the webhook.
const Path = "/validate-statefulsetslice"

// Validator implements admission.Validator.
type Validator struct {
	// Live reads and tries out, and is no cache.
	Live client.Client
	// Off are the features that are switched off.
	Off core.Traits
}

var _ admission.Validator[*v1alpha1.StatefulSetSlice] = Validator{}

// ValidateCreate refuses a slice whose pods or claims cannot be made.
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

// ValidateUpdate looks at what has changed: what was stored before there was this
// webhook can still be scaled (VA-7).
func (v Validator) ValidateUpdate(ctx context.Context, was, s *v1alpha1.StatefulSetSlice) (admission.Warnings, error) {
	if errs := later(was, s); len(errs) > 0 {
		return nil, invalid(s, errs)
	}
	if equality.Semantic.DeepEqual(was.Spec, s.Spec) {
		return nil, nil // metadata, and finalizers of a slice that goes
	}
	told, errs := warnings(s), gated(v.Off, was, s.Spec)
	if !equality.Semantic.DeepEqual(was.Spec.VolumeClaimTemplates, s.Spec.VolumeClaimTemplates) {
		found, w := v.tryClaims(ctx, s)
		errs, told = append(errs, found...), append(told, w...)
		if s.Spec.VolumeClaimUpdatePolicy != v1alpha1.InPlace {
			told = append(told, "claims that are there stay as they are: volumeClaimUpdatePolicy InPlace lets them grow with their template")
		}
	}
	if equality.Semantic.DeepEqual(was.Spec.Template, s.Spec.Template) {
		return told, invalid(s, errs)
	}
	found, w := v.tryTemplate(ctx, s)
	return append(told, w...), invalid(s, append(append(errs, template(s.Spec)...), found...))
}

// ValidateDelete refuses the deletion of a slice that is protected, unless its pods are to live on.
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
		return "" // it is only a warning; the controller tells of pods that are somebody else's (CL-10)
	}
	return overlap(s, &other)
}

// try lets the API server say what it thinks of pod template and claim templates: it tries
// to make a PodTemplate and claims of them.
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

// tryTemplate tries the template with what each pod has besides: the name of the last ordinal is the longest.
func (v Validator) tryTemplate(ctx context.Context, s *v1alpha1.StatefulSetSlice) (field.ErrorList, []string) {
	native := s.Native().Spec
	_, end := span(native.Ordinals, native.Replicas)
	tried := core.Trial(s.Namespace, s.Spec.Template, native.VolumeClaimTemplates)
	name := fmt.Sprintf("%s-%d", s.Name, max(end-1, 0))
	tried.Template.Labels = maps.Clone(tried.Template.Labels)
	if tried.Template.Labels == nil {
		tried.Template.Labels = map[string]string{}
	}
	tried.Template.Labels[appsv1.StatefulSetPodNameLabel] = name
	tried.Template.Spec.Hostname, tried.Template.Spec.Subdomain = name, s.Spec.ServiceName
	return v.tryOut(ctx, tried, "spec.")
}

// tryOut makes an object as a dry run. What is invalid in it is refused, with the names
// that the fields have in the slice. Any other failure, such as a quota that is full, may
// have passed when pods are made, and is a warning.
func (v Validator) tryOut(ctx context.Context, o client.Object, prefix string) (field.ErrorList, []string) {
	err := v.Live.Create(ctx, o, client.DryRunAll)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil, nil
	case !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil:
		return nil, []string{fmt.Sprintf("%s cannot be made as things are: %v", strings.TrimSuffix(prefix, "."), err)}
	}
	var out field.ErrorList
	for _, c := range status.Status().Details.Causes {
		out = append(out, refusal(prefix+c.Field, c))
	}
	return out, nil
}

// refusal puts a cause back into the words that it was made from.
func refusal(at string, c metav1.StatusCause) *field.Error {
	e := &field.Error{Type: field.ErrorTypeInvalid, Field: at, BadValue: field.OmitValueType{}, Detail: c.Message}
	for _, kind := range []field.ErrorType{field.ErrorTypeRequired, field.ErrorTypeNotSupported, field.ErrorTypeForbidden, field.ErrorTypeDuplicate, field.ErrorTypeNotFound, field.ErrorTypeInvalid} {
		if rest, found := strings.CutPrefix(c.Message, kind.String()); found {
			e.Type, e.Detail = kind, strings.TrimPrefix(rest, ": ")
		}
	}
	return e
}
