package controller_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// facts are all that can be seen of a side and must be as on the other one, by what it is about: the object and
// the field.
type facts map[string]string

// facts reads them.
func (s *side) facts(ctx context.Context) (facts, error) {
	set, pods, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	out := facts{}
	out.status(set.Status)
	for k := range pods {
		out.pod(&pods[k])
	}
	var claims corev1.PersistentVolumeClaimList
	if err := s.List(ctx, &claims, client.InNamespace(s.namespace)); err != nil {
		return nil, err
	}
	for k := range claims.Items {
		out.claim(&claims.Items[k])
	}
	var revisions appsv1.ControllerRevisionList
	if err := s.List(ctx, &revisions, client.InNamespace(s.namespace)); err != nil {
		return nil, err
	}
	for _, r := range revisions.Items {
		out.meta("revision", r.ObjectMeta)
		out["revision "+r.Name+" number"] = fmt.Sprint(r.Revision)
		out["revision "+r.Name+" data"] = string(r.Data.Raw)
	}
	return out, nil
}

func (f facts) status(s appsv1.StatefulSetStatus) {
	for field, n := range map[string]int32{"replicas": s.Replicas, "ready": s.ReadyReplicas, "available": s.AvailableReplicas, "updated": s.UpdatedReplicas, "current": s.CurrentReplicas, "collisions": *s.CollisionCount} {
		f["status "+field] = fmt.Sprint(n)
	}
	f["status currentRevision"], f["status updateRevision"] = s.CurrentRevision, s.UpdateRevision
	f["status conditions"] = text(s.Conditions)
}

// meta is what people and other controllers go by.
func (f facts) meta(kind string, m metav1.ObjectMeta) {
	at := kind + " " + m.Name + " "
	f[at+"labels"], f[at+"annotations"], f[at+"finalizers"] = fmt.Sprint(m.Labels), fmt.Sprint(m.Annotations), fmt.Sprint(m.Finalizers)
	f[at+"owners"], f[at+"generateName"] = owners(m.OwnerReferences), m.GenerateName
}

func (f facts) pod(p *corev1.Pod) {
	p = p.DeepCopy()
	delete(p.Labels, corev1.LabelTopologyZone) // of the node
	f.meta("pod", p.ObjectMeta)
	p.Spec.NodeName = ""
	for k := range p.Spec.Volumes { // the name that the API server makes up for the token
		if token := p.Spec.Volumes[k].Name; strings.HasPrefix(token, "kube-api-access-") {
			p.Spec.Volumes[k].Name = "token"
			for _, c := range p.Spec.Containers {
				for m := range c.VolumeMounts {
					c.VolumeMounts[m].Name = cmp.Or(map[string]string{token: "token"}[c.VolumeMounts[m].Name], c.VolumeMounts[m].Name)
				}
			}
		}
	}
	// The built-in controller puts the volumes of claims in front, in an order of chance.
	slices.SortStableFunc(p.Spec.Volumes, func(a, b corev1.Volume) int {
		if a.PersistentVolumeClaim == nil || b.PersistentVolumeClaim == nil {
			return 0
		}
		return cmp.Compare(a.Name, b.Name)
	})
	f["pod "+p.Name+" spec"] = text(p.Spec)
	f["pod "+p.Name+" phase"] = string(p.Status.Phase)
	f["pod "+p.Name+" ready"] = fmt.Sprint(isReady(p))
}

func (f facts) claim(c *corev1.PersistentVolumeClaim) {
	c = c.DeepCopy()
	maps.DeleteFunc(c.Annotations, func(key, _ string) bool { // of who binds it, early or late
		return strings.HasPrefix(key, "pv.kubernetes.io/") || strings.Contains(key, "volume.kubernetes.io/") || strings.Contains(key, "volume.beta.kubernetes.io/")
	})
	c.Finalizers = slices.DeleteFunc(c.Finalizers, func(f string) bool { return f == "kubernetes.io/pvc-protection" }) // comes and goes with the pod
	f.meta("claim", c.ObjectMeta)
	c.Spec.VolumeName = ""
	f["claim "+c.Name+" going"] = fmt.Sprint(c.DeletionTimestamp != nil)
	f["claim "+c.Name+" spec"] = text(c.Spec)
}

func text(of any) string {
	raw, err := json.Marshal(of)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func owners(refs []metav1.OwnerReference) string {
	var out []string
	for _, r := range refs {
		out = append(out, fmt.Sprintf("%s/%s/%s:%t:%t", r.APIVersion, r.Kind, r.Name, r.Controller != nil && *r.Controller, r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion))
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// told are the forms of the events on the set. Which pods they name, and how many there are, is left out: what is
// told of too often is summed up by the client library. Each version of an event counts, as a sum keeps its last form
// only. A side that told as much of a type as the library lets through may have told more, and silenced is that type.
type told struct {
	forms facts
	times map[string]int
}

// mostTold is how many events of a type the client library sends about an object before it drops what follows.
const mostTold = 25

func (t *told) hear(e *corev1.Event) {
	if e.InvolvedObject.Kind != "StatefulSet" {
		return
	}
	form := strings.TrimPrefix(e.Message, "(combined from similar events): ")
	form = regexp.MustCompile(`web-\d+`).ReplaceAllString(form, "web-N")
	form = regexp.MustCompile(`pods=\d+`).ReplaceAllString(form, "pods=N")
	form = strings.ReplaceAll(form, e.Namespace, "NAMESPACE")
	t.forms[fmt.Sprintf("event %s %s", e.Reason, form)] = e.Source.Component + " " + e.Type
	t.times[e.Type]++
}

// told returns what both sides told, but for the types of which one of them may have dropped some.
func (tw *twins) told() (builtIn, ours facts) {
	var out [2]facts
	silenced := map[string]bool{}
	for k, s := range tw.sides {
		s.lock.Lock()
		out[k] = maps.Clone(s.told.forms)
		for of, n := range s.told.times {
			silenced[of] = silenced[of] || n >= mostTold
		}
		s.lock.Unlock()
	}
	for _, f := range out {
		maps.DeleteFunc(f, func(about, by string) bool {
			return silenced[by[strings.LastIndexByte(by, ' ')+1:]] && !outrunning(about)
		})
	}
	return out[0], out[1]
}

// apart are the facts in which two sides differ, in order.
func apart(a, b facts) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(about string) bool { return a[about] == b[about] })
}
