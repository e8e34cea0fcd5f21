package slicecontroller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// inTemplate separates what is not known in the pod template of a set from what is not known elsewhere.
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

// unfit is why nothing can be done for a set at all, or nil.
func unfit(set *core.Set, unknown []string) *core.Fault {
	if len(unknown) > 0 {
		return &core.Fault{Reason: "NotUnderstood", Message: "nothing is done: " + strange(unknown)}
	}
	switch strategy := set.Spec.UpdateStrategy.Type; strategy {
	case "", appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType, core.EnforcedRollingUpdate:
		return nil
	default:
		return &core.Fault{Reason: "UnknownStrategy", Message: fmt.Sprintf("nothing is done: this release of the slice controller does not know the update strategy %s; run one that does, or choose another", strategy)}
	}
}

func strange(unknown []string) string {
	return "this release of the slice controller does not know " + strings.Join(unknown, ", ") + "; run the one that it was written for, or take that off"
}

// maxQuotedBytes is how much of an API server's answer a condition repeats.
const maxQuotedBytes = 1024

// fillIn lets a set have its pod template as the API server would store it, if it does not do that for the kind (RV-13). Where
// that cannot be had, the set gets the last one that could, and the reason. An error is worth trying again soon.
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
		return nil // nothing becomes valid by itself
	}
	return err
}

func invalid(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) }

// refusal says in the words of the API server why it does not fill a template in.
func refusal(err error) *core.Fault {
	said := err.Error()
	if len(said) > maxQuotedBytes {
		said = strings.ToValidUTF8(said[:maxQuotedBytes], "") + "..."
	}
	f := &core.Fault{Reason: "InvalidTemplate", Message: "no pod is replaced: " + said}
	if !invalid(err) {
		f.Reason, f.Passing = "TemplateNotTried", !apierrors.IsForbidden(err)
	}
	return f
}
