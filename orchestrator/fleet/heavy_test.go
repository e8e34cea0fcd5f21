package fleet

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// heavy returns an answer with a list of as many empty objects as fit into some bytes.
func heavy(before, after string, length int) string {
	return before + strings.Repeat("{},", length/3) + "{}" + after
}

// core returns an API server that has namespaces and pods, and answers every request for objects in the same way.
func core(t *testing.T, answer http.HandlerFunc) *End {
	t.Helper()
	has := map[string]string{
		"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":   `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/api/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"namespaces","kind":"Namespace","verbs":["get"]},{"name":"pods","kind":"Pod","namespaced":true,"verbs":["get","list","watch"]}]}`,
	}
	_, kubeconfig := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if known, ok := has[r.URL.Path]; ok {
			_, _ = w.Write([]byte(known))
			return
		}
		answer(w, r)
	})
	return connected(t, kubeconfig)
}

// allocated returns how many bytes the process has allocated so far.
func allocated() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// What a cluster answers is refused before it is decoded if it would take too much memory, on whatever way it is read.
func TestWhatIsTooHeavyIsNotDecoded(t *testing.T) {
	namespace, pod := `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u",`, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0"},"spec":{"containers":[`
	asked := "kube-system"
	for name, answer := range map[string]string{
		"owners":         heavy(namespace+`"ownerReferences":[`, "]}}", 8<<20),
		"managed fields": heavy(namespace+`"managedFields":[`, "]}}", 8<<20),
		"containers":     heavy(pod, "]}}", 2<<20),
		"depth":          namespace + `"annotations":` + strings.Repeat("[", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			end := core(t, func(w http.ResponseWriter, r *http.Request) {
				if watch, _ := strconv.ParseBool(r.URL.Query().Get("watch")); watch {
					answer = `{"type":"ADDED","object":` + answer + "}\n"
				}
				_, _ = w.Write([]byte(answer))
			})
			set, err := kubernetes.NewForConfig(end.Config)
			if err != nil {
				t.Fatal(err)
			}
			names, err := metadata.NewForConfig(end.Config)
			if err != nil {
				t.Fatal(err)
			}
			for way, read := range map[string]func() error{
				"the client": func() error { _, err := clusters.ClusterUID(t.Context(), end.Client); return err },
				"a pod": func() error {
					return end.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: asked}, &corev1.Pod{})
				},
				"the clientset": func() error {
					_, err := set.CoreV1().Namespaces().Get(t.Context(), asked, metav1.GetOptions{})
					return err
				},
				"metadata": func() error {
					_, err := names.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Get(t.Context(), asked, metav1.GetOptions{})
					return err
				},
				"a watch": func() error {
					events, err := set.CoreV1().Pods("shop").Watch(t.Context(), metav1.ListOptions{})
					if err != nil {
						return err
					}
					defer events.Stop()
					e := <-events.ResultChan()
					if status, is := e.Object.(*metav1.Status); is {
						return clusters.ErrTooLong{Host: status.Message}
					}
					if e.Object == nil {
						return clusters.ErrTooLong{}
					}
					return nil
				},
			} {
				before := allocated()
				if err := read(); !errors.As(err, new(clusters.ErrTooLong)) || !strings.Contains(err.Error(), "answer") {
					t.Errorf("%s: %v", way, err)
				}
				if took := allocated() - before; took > 150<<20 {
					t.Errorf("%s: %d MiB were allocated", way, took>>20)
				}
			}
		})
	}
}

// A page of large objects is read in smaller ones.
func TestLargeObjectsAreReadInSmallerPages(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}, Spec: corev1.PodSpec{Containers: make([]corev1.Container, 1)}}
	pod.Spec.Containers[0].Env = make([]corev1.EnvVar, 1500)
	one, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	var limits []string
	end, pods := core(t, func(w http.ResponseWriter, r *http.Request) {
		limits = append(limits, r.URL.Query().Get("limit"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		upTo, next := min(from+limit, 120), ""
		if upTo < 120 {
			next = strconv.Itoa(upTo)
		}
		_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`, next, strings.TrimSuffix(strings.Repeat(string(one)+",", upTo-from), ","))
	}), corev1.PodList{}
	if err := end.Client.List(t.Context(), &pods, client.InNamespace("shop")); err != nil || len(pods.Items) != 120 {
		t.Errorf("%d pods, asked for %q: %v", len(pods.Items), limits, err)
	}
	if limits[0] != "500" || limits[1] != "50" {
		t.Errorf("asked for %q", limits)
	}
}

// A list has an end, whatever a cluster promises.
func TestAListWithoutAnEndIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, items := range map[string]string{"empty pages": "", "large ones": heavy("", "", 3*499)} {
		n := 0
		end := core(t, func(w http.ResponseWriter, _ *http.Request) {
			n++
			_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"more"},"items":[%s]}`, items)
		})
		if err := end.Client.List(ctx, &corev1.PodList{}); !errors.As(err, new(clusters.ErrEndless)) || n > 1000 {
			t.Errorf("%s: given up after %d pages: %v", name, n, err)
		}
	}
}

// An event of a watch in protobuf is weighed as a whole, and its announced length is no reason to make room for it.
func TestAFrameIsWeighed(t *testing.T) {
	pod := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}}
	pod.OwnerReferences = make([]metav1.OwnerReference, 300_000)
	var raw bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(&pod, &raw); err != nil {
		t.Fatal(err)
	}
	event, err := (&metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: raw.Bytes()}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, frame := range map[string]string{"heavy": string(event), "announced": "\x0a"} {
		_, kubeconfig := server(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
			announced := len(frame)
			if name == "announced" {
				announced = 3 << 30
			}
			_, _ = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(announced)), frame...))
		})
		names, err := metadata.NewForConfig(connected(t, kubeconfig).Config)
		if err != nil {
			t.Fatal(err)
		}
		before := allocated()
		events, err := names.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if e, more := <-events.ResultChan(); more && e.Type == "ADDED" {
			t.Errorf("%s: it was decoded", name)
		}
		events.Stop()
		if took := allocated() - before; took > 80<<20 {
			t.Errorf("%s: %d MiB were allocated", name, took>>20)
		}
	}
}

// What there is room for is given back, whether or not an answer could be decoded.
func TestRoomIsGivenBack(t *testing.T) {
	end := core(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(heavy(`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[`, "]}}", 180_000)))
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 4 { // one of them takes half of the room
		if err := end.Client.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-0"}, &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}
	}
	release, err := weight.Take(ctx, weight.Most)
	if err != nil {
		t.Fatal(err)
	}
	release()
}
