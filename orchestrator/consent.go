package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// ConsentMap is the ConfigMap with which a namespace agrees that an orchestrator moves sets
// out of it and into it. An orchestrator has rights that the person who asks it may not have:
// without this, whoever can put a plan before it could have it take any set anywhere.
const ConsentMap = "stsmigrate-consent"

// consentKey is the key of ConsentMap on a side. Its lines name who is at the other end, as
// CLUSTER/NAMESPACE/SET: the UID of the cluster's kube-system namespace, and * for any.
func consentKey(side plans.Side) string {
	if side == plans.Source {
		return "moves-to"
	}
	return "moves-from"
}

func consentLine(r plans.Ref) string { return fmt.Sprintf("%s/%s/%s", r.Cluster, r.Namespace, r.Name) }

// Consent makes the ConfigMap with which a side agrees to a plan.
func Consent(p *plans.Plan, side plans.Side) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.On(side).Namespace, Name: ConsentMap},
		Data:       map[string]string{consentKey(side): consentLine(p.On(side.Other())) + "\n"},
	}
}

// agrees says whether one of the lines means a set.
func agrees(lines string, r plans.Ref) bool {
	want := strings.Split(consentLine(r), "/")
	for line := range strings.Lines(lines) {
		have := strings.Split(strings.TrimSpace(line), "/")
		if len(have) != len(want) {
			continue
		}
		same := true
		for k := range want {
			same = same && (have[k] == "*" || have[k] == want[k])
		}
		if same {
			return true
		}
	}
	return false
}

// consented wants both namespaces to agree, if an orchestrator carries the plan out: a person
// acts by own rights. It is asked before every ordinal, so that consent can be withdrawn.
func consented(ctx context.Context, i inspection) ([]Finding, error) {
	if !i.detached {
		return nil, nil
	}
	var out []Finding
	for _, side := range plans.Sides() {
		ref, other := i.plan.On(side), i.plan.On(side.Other())
		var cm corev1.ConfigMap
		err := i.on[side].Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ConsentMap}, &cm)
		if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("reading ConfigMap %s/%s on the %s: %w", ref.Namespace, ConsentMap, side, err)
		}
		if err == nil && agrees(cm.Data[consentKey(side)], other) {
			continue
		}
		saw := "it has no line " + consentLine(other) + " under " + consentKey(side)
		switch {
		case apierrors.IsNotFound(err):
			saw = "there is none"
		case err != nil:
			saw = "it must not be looked at"
		}
		out = append(out, Finding{
			Object: fmt.Sprintf("ConfigMap %s/%s on the %s (%s)", ref.Namespace, ConsentMap, side, ref.Context), Saw: saw,
			Want:   "the namespace to agree that an orchestrator moves " + i.plan.Source.Name + " " + strings.Replace(consentKey(side), "moves-", "", 1) + " " + other.String(),
			Remedy: "`stsmigrate consent --plan FILE --side " + string(side) + "` prints the ConfigMap: whoever is responsible for the namespace applies it",
		})
	}
	return out, nil
}

// ForConsent is the right to look whether a side agrees, which an orchestrator needs.
func ForConsent() Right {
	return Right{Resource: "configmaps", Verbs: []string{"get"}, Names: []string{ConsentMap}}
}

// union puts the lines of a consent below those that are there.
func union(have, more string) string {
	out := strings.Fields(have)
	for _, line := range strings.Fields(more) {
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n") + "\n"
}

// Agree adds the consent of a side to what the namespace agrees to already, as read by the
// caller; nil for nothing.
func Agree(have *corev1.ConfigMap, p *plans.Plan, side plans.Side) *corev1.ConfigMap {
	next := Consent(p, side)
	if have == nil {
		return next
	}
	lines := next.Data
	next.Data = map[string]string{}
	for k, v := range have.Data {
		next.Data[k] = v
	}
	for k, v := range lines {
		next.Data[k] = union(next.Data[k], v)
	}
	return next
}
