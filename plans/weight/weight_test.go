package weight_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

const many = 600

// spot is a list or a map within a type, and how a document reaches it.
type spot struct {
	root reflect.Type
	path string // for messages
	json string // with a %s for the list or map
	at   reflect.Type
}

// place is a type within another one, and how a document reaches it.
type place struct {
	spot
	typ reflect.Type
}

// in returns what a list, a map or a field of a place has, whose document has this text around it.
func (p place) in(name, around string, typ reflect.Type) place {
	return place{spot{p.root, p.path + name, strings.ReplaceAll(p.json, "%s", around), nil}, typ}
}

// fields returns the fields of a struct that are decoded.
func (p place) fields() (out []place) {
	for k := range p.typ.NumField() {
		f := p.typ.Field(k)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			out = append(out, p.in("."+f.Name, "%s", f.Type))
		case name != "" && name != "-" && f.IsExported():
			out = append(out, p.in("."+f.Name, fmt.Sprintf(`{%q:%%s}`, name), f.Type))
		}
	}
	return out
}

// spots returns the shortest way to each type of list and of map in what is decoded.
func spots(roots []reflect.Type) (out []spot) {
	seen, queue := map[string]bool{}, []place(nil)
	for _, r := range roots {
		queue = append(queue, place{spot{root: r, path: r.String(), json: "%s"}, r})
	}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		for p.typ.Kind() == reflect.Pointer {
			p.typ = p.typ.Elem()
		}
		once := fmt.Sprintf("%s %t", p.typ, strings.Contains(p.json, "["))
		if seen[once] || p.typ.PkgPath() == "time" {
			continue
		}
		seen[once] = true
		p.at = p.typ
		switch p.typ.Kind() {
		case reflect.Struct:
			queue = append(queue, p.fields()...)
		case reflect.Slice:
			if p.typ.Elem().Kind() != reflect.Uint8 {
				out, queue = append(out, p.spot), append(queue, p.in("[]", "[%s]", p.typ.Elem()))
			}
		case reflect.Map:
			out, queue = append(out, p.spot), append(queue, p.in("{}", `{"k":%s}`, p.typ.Elem()))
		default:
		}
	}
	return out
}

// fillings returns what a list or a map is filled with: as little text as makes the most of it.
func (s spot) fillings() (out []string) {
	for _, one := range []string{"{}", "null", `""`, "0", "[]"} {
		all := make([]string, many)
		for k := range all {
			all[k] = one
			if s.at.Kind() == reflect.Map {
				all[k] = fmt.Sprintf(`"%d":%s`, k, one)
			}
		}
		brackets := "[%s]"
		if s.at.Kind() == reflect.Map {
			brackets = "{%s}"
		}
		out = append(out, fmt.Sprintf(s.json, fmt.Sprintf(brackets, strings.Join(all, ","))))
	}
	return out
}

func decoded() []reflect.Type {
	out := []reflect.Type{reflect.TypeFor[plans.Plan](), reflect.TypeFor[journal.Journal](), reflect.TypeFor[metav1.PartialObjectMetadataList]()}
	for _, t := range clusters.Scheme().AllKnownTypes() {
		out = append(out, t)
	}
	return out
}

// Whatever list of whatever type is filled with nothing: what a decoder keeps of it, twice, since lists grow by copying, is
// less than the weight.
func TestNothingIsHeavierThanItsWeight(t *testing.T) {
	all, heaviest := spots(decoded()), 0.0
	if len(all) < 300 {
		t.Fatalf("%d lists and maps are found", len(all))
	}
	for _, s := range all {
		for k, doc := range s.fillings() {
			into := reflect.New(s.root).Interface()
			_ = kjson.UnmarshalCaseSensitivePreserveInts([]byte(doc), into) // what was decoded before a mistake counts
			w, err := weight.OfJSON([]byte(doc))
			if err != nil {
				t.Fatalf("%s: %v", s.path, err)
			}
			kept := weight.Of(into)
			heaviest = max(heaviest, 2*float64(kept)/float64(w))
			if 2*kept > w {
				t.Errorf("%s: %.40s...: %d bytes each are kept, and the weight is %d each", s.path, doc, kept/many, w/many)
			}
			if k == 0 {
				inProtobuf(t, s, into)
			}
		}
	}
	t.Logf("%d lists and maps; the heaviest is %.2f of its weight", len(all), heaviest)
}

// inProtobuf compares the weight of the same object in protobuf.
func inProtobuf(t *testing.T, s spot, o any) {
	t.Helper()
	object, ok := o.(runtime.Object)
	if !ok {
		return
	}
	var raw bytes.Buffer
	codec := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	if err := codec.Encode(object, &raw); err != nil {
		return // a kind that is JSON only
	}
	into := reflect.New(s.root).Interface().(runtime.Object) //nolint:forcetypeassert // as object is
	if _, _, err := codec.Decode(raw.Bytes(), nil, into); err != nil {
		return
	}
	if kept, w := weight.Of(into), weight.OfProtobuf(raw.Bytes()); 2*kept > w {
		t.Errorf("%s in protobuf: %d bytes each are kept, and the weight is %d each", s.path, kept/many, w/many)
	}
}

func TestATreeIsNotHeavierThanItsText(t *testing.T) {
	for name, doc := range map[string]string{
		"nulls":   "a: [" + strings.Repeat("~,", many) + "~]",
		"objects": "a: [" + strings.Repeat("{},", many) + "{}]",
		"lines":   "a:\n" + strings.Repeat("-\n", many),
		"keys":    strings.Repeat(" a:\n", many),
		"deep":    strings.Repeat("- ", 200) + "a",
	} {
		var tree yaml.Node
		if err := yaml.Unmarshal([]byte(doc), &tree); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if kept, w := weight.Of(&tree), weight.OfYAML([]byte(doc)); kept > w {
			t.Errorf("%s: the tree keeps %d bytes, and the weight is %d", name, kept, w)
		}
	}
}

// What clusters really have is far below the limits.
func TestWhatThereIsIsLight(t *testing.T) {
	var pod corev1.Pod
	pod.Name, pod.Namespace, pod.Labels = "web-0", "shop", map[string]string{"a": "b", "c": "d", "e": "f"}
	for range 3 {
		c := corev1.Container{Name: "c", Image: "registry.example/some/image:1.2.3", Command: []string{"a", "b", "c"}}
		for k := range 25 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", k), Value: "something"})
		}
		for range 8 {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "c", Image: c.Image})
	}
	pod.Status.Conditions = make([]corev1.PodCondition, 6)
	pod.Spec.Volumes = make([]corev1.Volume, 8)
	raw, err := json.Marshal(corev1.PodList{Items: make([]corev1.Pod, 0), TypeMeta: metav1.TypeMeta{}})
	if err != nil {
		t.Fatal(err)
	}
	one, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Replace(string(raw), `"items":[]`, `"items":[`+strings.Repeat(string(one)+",", 499)+string(one)+"]", 1)
	if w, err := weight.OfJSON([]byte(page)); err != nil || w > weight.Most {
		t.Errorf("a page of 500 pods with 75 variables each weighs %d MiB: %v", w>>20, err)
	}
}

// It stays the same however a document arrives.
func TestPiecesWeighAsMuchAsTheWhole(t *testing.T) {
	doc := []byte(`{"items":[{"a":"x\\\"[{,","b":[1,2,{}]},{}],"c":{"d":"\\"}}`)
	all, err := weight.OfJSON(doc)
	if err != nil {
		t.Fatal(err)
	}
	var j weight.JSON
	for k := range doc {
		j.Add(doc[k : k+1])
	}
	if j.Weight != all {
		t.Errorf("%d in pieces, %d as a whole", j.Weight, all)
	}
	if j.Add([]byte(strings.Repeat("[", 1000))); j.Err == nil {
		t.Error("it may be nested a thousand times")
	}
}
