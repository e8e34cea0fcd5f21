package trials

import (
	"context"
	"fmt"
	"strings"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/pods"
	"github.com/stsmigrate/stsmigrate/internal/writes"
)

// departures tries to delete the pods of the side that the ordinals leave, as the controller of the set does when the set gets
// smaller. Who may not delete pods does not try it. Pods that differ by their names alone are asked for once.
func (t trier) departures(ctx context.Context) (out []check.Finding, err error) {
	if _, gone := t.On[t.From].(clusters.Gone); gone {
		return nil, nil
	}
	may, err := pods.MayDelete(ctx, t.Inspection)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for o := range t.Ordinals.All() {
		pod, err := t.Pod(ctx, t.From, o)
		if err != nil {
			return nil, err
		}
		if pod == nil || pod.DeletionTimestamp != nil {
			continue
		}
		a := ask{Write: part.On(t.Plan, t.From).Write(part.Delete, "Pod", pod.Name, "")}
		nameless := pod.DeepCopy()
		nameless.Name = ""
		if kind := like(nameless); known[kind] {
			continue
		} else if known[kind] = true; len(pod.Finalizers) > 0 {
			out = append(out, check.Finding{
				Level: check.Warn, Object: t.object(a), Saw: fmt.Sprintf("it has finalizers (%s), and stays after it has stopped until their owner takes them off", strings.Join(pod.Finalizers, ", ")),
				Want: "a pod that is gone when it has stopped: its ordinal is on neither side until then", Remedy: "see to it that the program which takes these finalizers off runs, and knows the pods of both sides",
			})
		}
		if !may {
			continue
		}
		found, err := t.judged(a, pod.Name, writes.TryDelete(ctx, t.On[t.From], pod))
		if err != nil {
			return nil, err
		}
		for k := range found {
			found[k].Want = "it to be let through: the controller of the set deletes the pod when the set gets smaller"
			found[k].Remedy += "; or --ignore sizes-accepted where the rule lets that controller through"
		}
		out = append(out, found...)
	}
	return out, nil
}
