package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

// view is the second terminal. It reads the pods of both clusters itself and prints where each pod
// is whenever that changes.
type view struct {
	mu    sync.Mutex
	names []string         // of the clusters
	pods  []map[int32]mark // by cluster and ordinal
	count int32
	quiet bool // until the initial pods are known
	last  string
	say   func(string)
}

// mark is how a pod is shown. The zero value is a pod that does not exist.
type mark rune

const (
	absent   mark = '.'
	starting mark = '+'
	stopping mark = '-'
	ready    mark = 'r' // shown as the ordinal
)

const legend = "a number is a ready pod, + a starting pod, - a stopping pod, . no pod"

// watch prints the pods of a set in the clusters until ctx ends.
func watch(ctx context.Context, set fixture.Set, say func(string), clusters ...*cluster.Cluster) error {
	v := &view{count: set.Replicas, quiet: true, say: say}
	var known []cache.InformerSynced
	for _, c := range clusters {
		side := map[int32]mark{}
		v.names = append(v.names, c.Name)
		v.pods = append(v.pods, side)
		client, err := kubernetes.NewForConfig(c.Config())
		if err != nil {
			return err
		}
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(set.Namespace))
		handled, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { v.put(side, o, false) },
			UpdateFunc: func(_, o any) { v.put(side, o, false) },
			DeleteFunc: func(o any) { v.put(side, o, true) },
		})
		if err != nil {
			return err
		}
		known = append(known, handled.HasSynced)
		factory.Start(ctx.Done())
	}
	if !cache.WaitForCacheSync(ctx.Done(), known...) {
		return ctx.Err()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.quiet = false
	v.show()
	return nil
}

func (v *view) put(side map[int32]mark, o any, gone bool) {
	if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = d.Obj
	}
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(pod.Name, fixture.Name+"-"), 10, 32)
	if err != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	side[int32(n)] = markOf(pod)
	if gone {
		delete(side, int32(n))
	}
	v.show()
}

func markOf(p *corev1.Pod) mark {
	if p.DeletionTimestamp != nil {
		return stopping
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return ready
		}
	}
	return starting
}

// show prints the line unless it equals the previous one.
func (v *view) show() {
	if line := v.line(); !v.quiet && line != v.last {
		v.last = line
		v.say(time.Now().UTC().Format("15:04:05.000") + "  " + line)
	}
}

// line returns, for example, "east [0 1 2 3 .]  west [. . . . 4]   unavailable 0 of d=1".
func (v *view) line() string {
	var sides []string
	down := 0
	for i, name := range v.names {
		var marks []string
		for o := range v.count {
			marks = append(marks, v.pods[i][o].show(o))
		}
		sides = append(sides, name+" ["+strings.Join(marks, " ")+"]")
	}
	for o := range v.count {
		up := false
		for i := range v.names {
			up = up || v.pods[i][o] == ready
		}
		if !up {
			down++
		}
	}
	return fmt.Sprintf("%s   unavailable %d of d=%d", strings.Join(sides, "  "), down, budget)
}

func (m mark) show(ordinal int32) string {
	switch m {
	case ready:
		return strconv.Itoa(int(ordinal))
	case starting, stopping:
		return string(m)
	default:
		return string(absent)
	}
}
