package slicecontroller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/slicecontroller/admission"
	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// inTemplate separates the unknown fields in the pod template of a set from the other unknown fields.
func inTemplate(unknown []string) (template, elsewhere []string) {
	for _, path := range unknown {
		if strings.HasPrefix(path, "spec.template.") || strings.HasPrefix(path, "spec.template ") {
			template = append(template, path)
		} else {
			elsewhere = append(elsewhere, path)
		}
	}
	return template, elsewhere
}

// unfit returns why nothing can be done for a set at all, or nil.
func unfit(set *core.Set, unknown []string) *core.Fault {
	if len(unknown) > 0 {
		return &core.Fault{Reason: "NotUnderstood", Message: "nothing is done: " + strange(unknown)}
	}
	switch strategy := set.Spec.UpdateStrategy.Type; strategy {
	case "", appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType, core.EnforcedRollingUpdate:
		return nil
	default:
		return &core.Fault{Reason: "UnknownStrategy", Message: fmt.Sprintf("nothing is done: this release of the slice controller does not know the update strategy %s; run a release that supports it, or choose another strategy", strategy)}
	}
}

// strange returns the message that fields are not known. The user chooses their names, at any length.
func strange(unknown []string) string {
	return "this release of the slice controller does not know " + core.Cut(strings.Join(unknown, ", "), maxNamedBytes) + "; run the release that the set was written for, or remove those fields"
}

// maxQuotedBytes is how many bytes of the API server's message a condition repeats. maxNamedBytes is how many
// bytes of the names of unknown fields it repeats, so that what to do about them is never cut off.
const maxQuotedBytes, maxNamedBytes = 1024, 512

// fillIn replaces the pod template of a set by the template as the API server would store it, if the API
// server does not default the templates of the kind (RV-13). If that fails, the set gets the last usable
// template and the reason for the failure. A returned error is worth an early retry.
func (r *Reconciler) fillIn(ctx context.Context, do effects, w core.World, unknown []string) error {
	if !r.kind.undefaulted {
		return nil
	}
	set := w.Set
	if len(unknown) > 0 {
		set.Fault = &core.Fault{Reason: "NotUnderstood", Message: "no pod is replaced: " + strange(unknown)}
		set.Spec.Template, _ = w.LastGood()
		return nil
	}
	raw, err := json.Marshal(set.Spec.Template)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	asked := hex.EncodeToString(sum[:])
	filled, known := w.FilledIn(asked)
	if !known {
		filled, err = do.Default(ctx, set.Spec.Template)
	}
	if err == nil {
		set.Asked, set.Spec.Template = asked, filled
		return nil
	}
	set.Fault = refusal(err)
	set.Spec.Template, _ = w.LastGood()
	if invalid(err) {
		return nil // a retry cannot make it valid
	}
	return err
}

func invalid(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) }

// refusal returns the fault for an error of the API server, in the words of the API server.
func refusal(err error) *core.Fault {
	f := &core.Fault{Reason: "InvalidTemplate", Message: "no pod is replaced: " + core.Cut(unnamed(err), maxQuotedBytes)}
	if !invalid(err) {
		f.Reason, f.Passing = "TemplateNotTried", !apierrors.IsForbidden(err)
	}
	return f
}

// unnamed returns the message of an error without the name that the API server has generated for a dry run: each attempt
// has another name, and the same fault would be told at each.
func unnamed(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || !strings.HasPrefix(status.Status().Details.Name, admission.TrialName) {
		return err.Error()
	}
	return strings.ReplaceAll(err.Error(), status.Status().Details.Name, strings.TrimSuffix(admission.TrialName, "-"))
}
