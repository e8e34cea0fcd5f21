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

// facts are the observable state of a side, which must be the same on the other side. The key
// names the object and the field.
type facts map[string]string

// facts reads the facts of a side.
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

// meta adds the metadata that users and other controllers depend on.
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
	for k := range p.Spec.Volumes { // the API server generates the name of the token volume
		if token := p.Spec.Volumes[k].Name; strings.HasPrefix(token, "kube-api-access-") {
			p.Spec.Volumes[k].Name = "token"
			for _, c := range p.Spec.Containers {
				for m := range c.VolumeMounts {
					c.VolumeMounts[m].Name = cmp.Or(map[string]string{token: "token"}[c.VolumeMounts[m].Name], c.VolumeMounts[m].Name)
				}
			}
		}
	}
	// The built-in controller puts the volumes of claims in front, in random order.
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
	maps.DeleteFunc(c.Annotations, func(key, _ string) bool { // written by the binder, early or late
		return strings.HasPrefix(key, "pv.kubernetes.io/") || strings.Contains(key, "volume.kubernetes.io/") || strings.Contains(key, "volume.beta.kubernetes.io/")
	})
	c.Finalizers = slices.DeleteFunc(c.Finalizers, func(f string) bool { return f == "kubernetes.io/pvc-protection" }) // added and removed with the pod
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

// told holds the forms of the events about the set. It leaves out which pods they name and how many there
// are: the client library aggregates frequent events. Each version of an event counts, since an aggregate
// keeps only its last form. times counts the events by type: a side that reached the limit of the library
// may have dropped further events of that type, which is then silenced.
type told struct {
	forms facts
	times map[string]int
}

// mostTold is how many events of a type the client library sends about an object before it drops events.
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

// told returns the events of both sides, without the types of which one side may have dropped some.
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

// apart lists the facts in which two sides differ, in order.
func apart(a, b facts) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(about string) bool { return a[about] == b[about] })
}
