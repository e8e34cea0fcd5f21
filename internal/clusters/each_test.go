package clusters

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// paged is a client that returns as many volumes as its value, in pages of three.
type paged struct {
	client.Client
	volumes, asked int
}

func (p *paged) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	from := 0
	if o.Continue != "" {
		if _, err := fmt.Sscan(o.Continue, &from); err != nil {
			return err
		}
	}
	if o.Limit == 0 {
		return errors.New("everything was asked for at once")
	}
	p.asked++
	out := list.(*corev1.PersistentVolumeList)
	for k := from; k < min(from+3, p.volumes); k++ {
		out.Items = append(out.Items, corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pv-", k)}})
	}
	if from+3 < p.volumes {
		out.Continue = fmt.Sprint(from + 3)
	}
	return nil
}

func TestEachGoesThroughAllPages(t *testing.T) {
	for volumes, pages := range map[int]int{0: 1, 2: 1, 3: 1, 4: 2, 10: 4} {
		on := &paged{volumes: volumes}
		seen := 0
		err := Each(t.Context(), on, func() client.ObjectList { return &corev1.PersistentVolumeList{} }, func(pv *corev1.PersistentVolume) {
			if want := fmt.Sprint("pv-", seen); pv.Name != want {
				t.Errorf("%s, expected %s", pv.Name, want)
			}
			seen++
		})
		if err != nil || seen != volumes || on.asked != pages {
			t.Errorf("%d of %d volumes seen in %d pages, expected %d pages: %v", seen, volumes, on.asked, pages, err)
		}
	}
}
