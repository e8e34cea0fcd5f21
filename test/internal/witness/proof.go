package witness

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// sight is what both API servers return: the pods by name, and the range of the set, if it exists.
type sight struct {
	pods [2]map[string]*corev1.Pod
	sets [2]*span
}

// reader returns the pods and the set of one side from its API server, never from a cache.
type reader func(side int) (map[string]*corev1.Pod, *span, error)

// proven reports whether both clusters together show what their watches seem to show. The order of the reads
// is the proof: source, destination, source. What the source shows before and after was also so when the
// destination was read. Without a reader the order of the events is the proof. A side whose API server does
// not answer is as it was last seen, since nothing happens to its objects.
func (r *record) proven(shows func(sight) bool) bool {
	if r.read == nil {
		return true
	}
	pods, set, err := r.read(0)
	if err != nil {
		return true
	}
	here, there, err := r.read(1)
	if err != nil {
		return true
	}
	if !shows(sight{[2]map[string]*corev1.Pod{pods, here}, [2]*span{set, there}}) {
		return false
	}
	pods, set, err = r.read(0)
	return err != nil || shows(sight{[2]map[string]*corev1.Pod{pods, here}, [2]*span{set, there}})
}

// same reports whether one of the pods read is this one, and is alive.
func same(read map[string]*corev1.Pod, seen *corev1.Pod) bool {
	p := read[seen.Name]
	return alive(p) && p.UID == seen.UID
}

// answer limits how long a read may take.
const answer = 2 * time.Second

// readers returns a reader for two clusters.
func readers(ctx context.Context, set string, clients [2]kubernetes.Interface, namespaces [2]string) reader {
	return func(side int) (map[string]*corev1.Pod, *span, error) {
		ctx, cancel := context.WithTimeout(ctx, answer)
		defer cancel()
		client, namespace := clients[side], namespaces[side]
		list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, nil, err
		}
		pods := map[string]*corev1.Pod{}
		for i := range list.Items {
			pods[list.Items[i].Name] = &list.Items[i]
		}
		of, err := client.AppsV1().StatefulSets(namespace).Get(ctx, set, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return pods, &span{}, nil
		}
		if err != nil {
			return nil, nil, err
		}
		s := rangeOf(of)
		return pods, &s, nil
	}
}

// rangeOf returns the ordinals of a set.
func rangeOf(set *appsv1.StatefulSet) span {
	s := span{}
	if set.Spec.Ordinals != nil {
		s.start = set.Spec.Ordinals.Start
	}
	s.end = s.start + 1
	if set.Spec.Replicas != nil {
		s.end = s.start + *set.Spec.Replicas
	}
	return s
}
