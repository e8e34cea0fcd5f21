package sets

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// Twins remembers which pairs of pod templates were compared by a trial, and how they differ.
type Twins struct {
	lock  sync.Mutex
	known map[string][]build.Difference
}

// otherTemplate holds a wave whose pods would start with another template on the side that receives them (S18): the
// template of the side that they leave is what has written their data. It is asked in both directions, since a split may be
// upgraded on one side, and also of pods that are down: a newer version that does not start may have changed the data
// before that. After, if there is nothing to hold for.
func (w comparison) otherTemplate(ctx context.Context, m plans.StepContext, from, to *appsv1.StatefulSet) (plans.Observation, error) {
	source, destination := from, to
	if m.From == plans.Destination {
		source, destination = to, from
	}
	want, why := DestinationSet(source, w.Plan)
	if why == nil && Alike(want.Spec.Template, destination.Spec.Template) {
		return plans.Done(), nil
	}
	pair, err := pairOf(m.From, source, destination)
	if err != nil || pair == m.Template {
		return plans.Done(), err
	}
	unless := fmt.Sprintf("no ordinal is scaled down until the pod templates of both sets are alike, or until the user says that the data may be used by that of the %s (--other-template %s)", m.To(), pair)
	if why != nil {
		return plans.Wait(reasons.TemplateDiffers, fmt.Sprintf("%s: the patches of the plan do not fit the one that %s has now: %s", unless, w.Plan.Source.Set(), oneLine(why))), nil
	}
	found, err := w.differences(ctx, pair, source, want, destination)
	if err != nil || len(found) == 0 {
		return plans.Done(), err
	}
	return plans.Wait(reasons.TemplateDiffers, fmt.Sprintf("%s: %s would start on %s with another pod template than that of %s, which has written the data: %s; to make them alike: %s",
		unless, w.Plan.Pods(m.Ordinals), w.Plan.On(m.To()).Set(), w.Plan.On(m.From).Set(), few(found, m.From), w.alignment(m, found))), nil
}

// differences compares the template of the destination with what the plan makes of the source's. Where they are not equal
// as they stand, the API server of the destination makes a copy of the source's set as a dry run: defaults and webhooks are
// no differences. A pair is tried once. If that server refuses the copy, what differs as it stands counts.
func (w comparison) differences(ctx context.Context, pair string, source, want, destination *appsv1.StatefulSet) ([]build.Difference, error) {
	if w.twins != nil {
		w.twins.lock.Lock()
		defer w.twins.lock.Unlock()
		if found, ok := w.twins.known[pair]; ok {
			return found, nil
		}
	}
	tried, err := Try(ctx, w.Pair, source)
	if err != nil {
		return nil, fmt.Errorf("trying the pod template of %s on the destination: %w", w.Plan.Source.Set(), err)
	}
	if tried.Refusal == nil {
		want = tried.Back
	}
	var found []build.Difference
	if !Alike(want.Spec.Template, destination.Spec.Template) {
		if found, err = build.Differences(settled(want.Spec.Template), settled(destination.Spec.Template)); err != nil {
			return nil, err
		}
	}
	if w.twins != nil {
		if w.twins.known == nil || len(w.twins.known) > 64 {
			w.twins.known = map[string][]build.Difference{}
		}
		w.twins.known[pair] = found
	}
	return found, nil
}

// Unlike returns how the pod templates of both sets differ, apart from the patches of the plan, or "". Where the API server
// of the destination does not try the source's, nothing is said.
func Unlike(ctx context.Context, w clusters.Pair) (string, error) {
	source, err := w.Set(ctx, plans.Source)
	if err != nil || source == nil {
		return "", err
	}
	destination, err := w.Set(ctx, plans.Destination)
	if err != nil || destination == nil {
		return "", err
	}
	want, err := DestinationSet(source, w.Plan)
	if err != nil {
		return "the patches of the plan do not fit that of the source: " + oneLine(err), nil
	}
	if Alike(want.Spec.Template, destination.Spec.Template) {
		return "", nil
	}
	tried, err := Try(ctx, w, source)
	if err != nil || tried.Refusal != nil || Alike(tried.Back.Spec.Template, destination.Spec.Template) {
		return "", err
	}
	found, err := build.Differences(settled(tried.Back.Spec.Template), settled(destination.Spec.Template))
	return few(found, plans.Source), err
}

// Trial is the set that the destination would get, as it was sent and as the API server returned it (dry run), or the error
// with which that refused it.
type Trial struct {
	Sent, Back *appsv1.StatefulSet
	Refusal    error
}

// Try sends the copy of the source's set as a dry run. Its name differs from the real one, so that the API server does not
// refuse it where the set exists already.
func Try(ctx context.Context, w clusters.Pair, source *appsv1.StatefulSet) (Trial, error) {
	twin, err := DestinationSet(source, w.Plan)
	if err != nil {
		return Trial{}, err
	}
	twin.Name += "-dry-run"
	sent := twin.DeepCopy()
	err = writes.Copy(ctx, w.On[plans.Source], source, w.On[plans.Destination], twin, client.DryRunAll)
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		return Trial{sent, twin, err}, nil
	}
	return Trial{sent, twin, nil}, err
}

// Alike reports whether two pod templates make the same pods.
func Alike(a, b corev1.PodTemplateSpec) bool {
	return equality.Semantic.DeepEqual(settled(a), settled(b))
}

// restartedAt is what `kubectl rollout restart` writes to a template to have its pods replaced by pods like them.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// settled returns a template without what says nothing of its pods.
func settled(t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	if _, ok := t.Annotations[restartedAt]; ok {
		t.Annotations = maps.Clone(t.Annotations)
		delete(t.Annotations, restartedAt)
	}
	return t
}

// pairOf returns a word for two templates and the side that the ordinals leave. What a user says of it holds for them alone.
func pairOf(from plans.Side, source, destination *appsv1.StatefulSet) (string, error) {
	raw, err := json.Marshal([]any{from, settled(source.Spec.Template), settled(destination.Spec.Template)})
	return fmt.Sprintf("%.8x", sha256.Sum256(raw))[:8], err
}

// few lists differences as the pods of a side would see them: from what they have to what they would get. It shows the
// values of images alone: others may be confidential.
func few(found []build.Difference, from plans.Side) string {
	const most = 3
	var out []string
	for k, d := range found {
		if k == most {
			out = append(out, fmt.Sprintf("and %d more", len(found)-most))
			break
		}
		has, gets := d.Before, d.After
		if from == plans.Destination {
			has, gets = gets, has
		}
		if strings.HasSuffix(d.Path, ".image") {
			out = append(out, fmt.Sprintf("%s: %s -> %s", d.Path, has, gets))
		} else {
			out = append(out, d.Path)
		}
	}
	return strings.Join(out, ", ")
}

// alignment returns the command that gives the side which receives the wave the template of the other one. Patches may have
// made an image of the destination from another one of the source, which the user knows.
func (w comparison) alignment(m plans.StepContext, found []build.Difference) string {
	to := w.Plan.On(m.To())
	edit := fmt.Sprintf("`kubectl -n %s edit %s %s`", to.Namespace, strings.ToLower(to.SetKind()), to.Name)
	if to.IsSlice() || m.To() == plans.Source && len(w.Plan.Patches) > 0 {
		return edit
	}
	images := map[string]string{}
	for _, d := range found {
		name, image := containerOf(d.Path)
		if !image {
			return edit
		}
		images[name] = d.After
		if m.To() == plans.Destination {
			images[name] = d.Before
		}
	}
	command := fmt.Sprintf("kubectl -n %s set image statefulset/%s", to.Namespace, to.Name)
	for _, name := range slices.Sorted(maps.Keys(images)) {
		command += " " + name + "=" + images[name]
	}
	return "`" + command + "`"
}

// containerOf returns the container of a path such as spec.containers[db].image, and reports whether it is one.
func containerOf(path string) (string, bool) {
	rest, ok := strings.CutSuffix(path, "].image")
	if !ok {
		return "", false
	}
	for _, list := range []string{"spec.containers[", "spec.initContainers["} {
		if name, ok := strings.CutPrefix(rest, list); ok {
			return name, true
		}
	}
	return "", false
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
