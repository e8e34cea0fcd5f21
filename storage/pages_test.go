package storage

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

//nolint:gochecknoglobals // a flag of the test
var update = flag.Bool("update", false, "write what the looks make into the pages of docs/storage")

// TestPagesShowWhatTheLooksMake executes the move on each page of docs/storage, from the objects before the
// move to those after `apply` and after `finalize`.
func TestPagesShowWhatTheLooksMake(t *testing.T) {
	files, err := filepath.Glob("../docs/storage/*.md")
	if err != nil || len(files) < 5 {
		t.Fatalf("found the pages %v (%v)", files, err)
	}
	for _, file := range files {
		if filepath.Base(file) == "before-the-old-cluster-goes.md" {
			continue // describes the time after a move
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := newPage(t, string(raw))
			p.walk(plans.Move)
			p.compare("After `apply`")
			p.walk(plans.Finalize)
			p.compare("After `finalize`")
			if *update {
				if err := os.WriteFile(file, []byte(p.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// page is one page: a text with blocks of YAML below headings, and the clusters that the block "Before"
// describes.
type page struct {
	t    *testing.T
	text string
	plan *plans.Plan
	on   map[plans.Side]client.Client
	seq  int
}

// block finds the YAML below a heading.
func (p *page) block(heading string) (from, to int) {
	p.t.Helper()
	at := regexp.MustCompile("(?s)\n## " + regexp.QuoteMeta(heading) + "[^\n]*\n.*?```yaml\n(.*?)```").FindStringSubmatchIndex(p.text)
	if at == nil {
		p.t.Fatalf("there is no YAML below %q", heading)
	}
	return at[2], at[3]
}

func newPage(t *testing.T, text string) *page {
	t.Helper()
	p := &page{t: t, text: text, seq: 1}
	from, to := p.block("Asked for")
	m, err := plans.DecodeMigration([]byte(text[from:to]))
	if err != nil {
		t.Fatal(err)
	}
	in := build.Inputs{
		Name: "web", ID: "x7k2p", MaxUnavailable: 1, Storage: m.Spec.Storage, Empty: m.Spec.Empty, Gates: m.Spec.Gates,
		Source:      plans.Ref{Cluster: "east", Namespace: m.Spec.Source.Namespace, Name: "web"},
		Destination: plans.Ref{Cluster: "east", Namespace: m.Spec.Destination.Namespace, Name: "web"},
		Set:         &appsv1.StatefulSet{},
	}
	in.Set.Name = "web"
	if m.Spec.Destination.Context != "" {
		in.Destination.Cluster = "west"
	}
	if in.Destination.Namespace == "" {
		in.Destination.Namespace = in.Source.Namespace
	}
	from, to = p.block("Before")
	var objects []client.Object
	for _, doc := range strings.Split(text[from:to], "---\n") {
		o := decoded(t, doc)
		objects = append(objects, o)
		pv, ok := o.(*corev1.PersistentVolume)
		if !ok {
			continue
		}
		handle, _ := Handle(pv)
		template, ordinal := strings.CutSuffix(pv.Spec.ClaimRef.Name, "-web-0")
		if ordinal {
			in.Set.Spec.VolumeClaimTemplates = append(in.Set.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{})
			in.Set.Spec.VolumeClaimTemplates[len(in.Set.Spec.VolumeClaimTemplates)-1].Name = template
		} else {
			in.Shared = append(in.Shared, plans.SharedVolume{Claim: pv.Spec.ClaimRef.Name, Volume: pv.Name, Handle: handle})
		}
	}
	p.plan, err = build.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	east := fake.NewClientBuilder().WithObjects(objects...).Build()
	p.on = map[plans.Side]client.Client{plans.Source: east, plans.Destination: east}
	if !p.plan.OneCluster() {
		p.on[plans.Destination] = fake.NewClientBuilder().Build()
	}
	return p
}

func decoded(t *testing.T, doc string) client.Object {
	t.Helper()
	var o client.Object = &corev1.PersistentVolumeClaim{}
	if strings.Contains(doc, "kind: PersistentVolume\n") {
		o = &corev1.PersistentVolume{}
	}
	if err := yaml.UnmarshalStrict([]byte(doc), o); err != nil {
		t.Fatalf("%v in\n%s", err, doc)
	}
	return o
}

// walk executes the storage steps of a direction.
func (p *page) walk(c plans.Direction) {
	p.t.Helper()
	leg := plans.Leg{Direction: c, First: p.seq, Lowest: p.plan.Start, End: p.plan.End()}
	if c == plans.Finalize {
		leg.Lowest = leg.End
	}
	looks := Looks(p.plan, p.on, nil)
	var flight *plans.Flight
	for step, more := p.plan.Step(leg, p.seq); more; step, more = p.plan.Step(leg, p.seq) {
		p.seq++
		look, ours := looks[step.Op]
		if !ours || step.Op == plans.Vacate {
			continue
		}
		if step.Op == plans.Release {
			vols, why, err := Volumes(p.t.Context(), p.plan, p.on, plans.Source, 0)
			if err != nil || why != "" {
				p.t.Fatal(why, err)
			}
			flight = &plans.Flight{Ordinals: step.Ordinals, From: plans.Source, Volumes: vols}
		}
		m := plans.StepContext{Step: step, Began: true, Flight: flight, Stamp: plans.Stamp{Plan: p.plan.ID, Epoch: 1, Seq: step.Seq}}
		for n := 0; ; n++ {
			s, err := look(p.t.Context(), m)
			if err != nil || s.Standing == plans.Conflict || n > 20 {
				p.t.Fatalf("%s: %s (%v)", step.ID(), s.Reason, err)
			}
			if s.Standing == plans.After {
				break
			}
			if s.Standing == plans.Before {
				if err := s.Write(p.t.Context()); err != nil {
					p.t.Fatal(err)
				}
			}
			p.bind()
		}
	}
}

// bind acts as the control plane: it binds claims and volumes that name each other, and releases a volume
// whose claim is gone.
func (p *page) bind() {
	for name, c := range p.clusters() {
		volumes, claims := contents(p.t, c)
		for i := range volumes {
			pv := &volumes[i]
			ref := pv.Spec.ClaimRef
			at := slices.IndexFunc(claims, func(c corev1.PersistentVolumeClaim) bool {
				return c.Namespace == ref.Namespace && c.Name == ref.Name && c.Spec.VolumeName == pv.Name
			})
			if at < 0 {
				pv.Status.Phase = corev1.VolumeReleased
				if ref.UID == "" {
					pv.Status.Phase = corev1.VolumeAvailable
				}
			} else {
				claim := &claims[at]
				if claim.UID == "" {
					claim.UID = types.UID("uid-of-" + claim.Name + "-in-" + name)
				}
				ref.UID, pv.Status.Phase, claim.Status.Phase = claim.UID, corev1.VolumeBound, corev1.ClaimBound
				write(p.t, c, claim.DeepCopy(), claim)
			}
			write(p.t, c, pv.DeepCopy(), pv)
		}
	}
}

// write updates an object, and then its status.
func write(t *testing.T, c client.Client, spec, status client.Object) {
	t.Helper()
	must(t, c.Update(t.Context(), spec))
	status.SetResourceVersion(spec.GetResourceVersion())
	must(t, c.Status().Update(t.Context(), status))
}

func (p *page) clusters() map[string]client.Client {
	out := map[string]client.Client{"east": p.on[plans.Source]}
	if !p.plan.OneCluster() {
		out["west"] = p.on[plans.Destination]
	}
	return out
}

func contents(t *testing.T, c client.Client) ([]corev1.PersistentVolume, []corev1.PersistentVolumeClaim) {
	t.Helper()
	var volumes corev1.PersistentVolumeList
	var claims corev1.PersistentVolumeClaimList
	must(t, c.List(t.Context(), &volumes))
	must(t, c.List(t.Context(), &claims))
	return volumes.Items, claims.Items
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// compare requires that the objects below a heading equal the current ones.
func (p *page) compare(heading string) {
	p.t.Helper()
	now := p.objects()
	from, to := p.block(heading)
	if *update {
		p.text = p.text[:from] + now + p.text[to:]
		return
	}
	if diff := cmp.Diff(p.text[from:to], now); diff != "" {
		p.t.Errorf("%s (-page +made; -update writes it):\n%s", heading, diff)
	}
}

func (p *page) objects() string {
	var out []string
	names := []string{"east", "west"}
	for _, name := range names {
		c, ok := p.clusters()[name]
		if !ok {
			continue
		}
		volumes, claims := contents(p.t, c)
		for i := range volumes {
			out = append(out, p.render(name, "PersistentVolume", &volumes[i]))
		}
		for i := range claims {
			out = append(out, p.render(name, "PersistentVolumeClaim", &claims[i]))
		}
	}
	return strings.Join(out, "---\n")
}

func (p *page) render(cluster, kind string, o client.Object) string {
	o.SetResourceVersion("")
	o.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	raw, err := yaml.Marshal(o)
	must(p.t, err)
	head := ""
	if !p.plan.OneCluster() {
		head = fmt.Sprintf("# in %s\n", cluster)
	}
	return head + string(bytes.ReplaceAll(raw, []byte("  creationTimestamp: null\n"), nil))
}
