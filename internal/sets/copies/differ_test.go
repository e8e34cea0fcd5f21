package copies

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/plans"
)

// value is a value that no text may have.
const value = "canary-of-a-secret"

func move() *plans.Plan {
	return &plans.Plan{
		ID: "abc", Name: "web",
		Source:      plans.Ref{Cluster: "1", Context: "east", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "2", Context: "west", Namespace: "mall", Name: "web"},
	}
}

func at(hour int) metav1.Time { return metav1.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC) }

// by lets a manager be the one that has last written some fields.
func by(o client.Object, manager string, hour int, fields string) {
	when := at(hour)
	o.SetManagedFields(append(o.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &when, FieldsV1: metav1.NewFieldsV1(fields)}))
}

func secret(uid, password string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pw", UID: "u-" + "1", ResourceVersion: uid}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"password": []byte(password)}}
}

// stamped marks a copy as the plan's.
func stamped[T client.Object](o T) T {
	o.SetAnnotations(map[string]string{plans.StampAnnotation: "abc/1/1"})
	return o
}

func TestWhatCountsAsADifference(t *testing.T) {
	service := func(change func(*corev1.Service), managed ...string) *corev1.Service {
		s := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "web", Port: 80}}, SessionAffinity: "None"}}
		change(s)
		for _, m := range managed {
			by(s, m, 12, `{"f:spec":{"f:trafficDistribution":{},"f:internalTrafficPolicy":{}}}`)
		}
		return s
	}
	same := func(*corev1.Service) {}
	near := "PreferClose"
	defaulted := func(s *corev1.Service) { s.Spec.TrafficDistribution = &near }
	account := func(change func(*corev1.ServiceAccount)) *corev1.ServiceAccount {
		a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "web"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}}
		change(a)
		return a
	}
	config := func(data map[string]string) *corev1.ConfigMap { return &corev1.ConfigMap{Data: data} }
	other := secret("9", value)
	other.UID, other.Labels, other.Annotations, other.Immutable = "another", map[string]string{"tool": "x"}, map[string]string{"tool": "y"}, ptr.To(true)
	for name, c := range map[string]struct {
		from, to client.Object
		want     string
	}{
		"a Secret that was made again, with marks of tools": {secret("1", value), other, ""},
		"a password":                         {secret("1", value), secret("1", "new"), "data[password]"},
		"a key more":                         {secret("1", value), &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"password": []byte(value), "token": nil}}, "data[token]"},
		"a type":                             {secret("1", value), &corev1.Secret{Type: "kubernetes.io/basic-auth", Data: map[string][]byte{"password": []byte(value)}}, "type"},
		"no data, and empty data":            {config(nil), config(map[string]string{}), ""},
		"a setting and bytes":                {config(map[string]string{"a": "1"}), &corev1.ConfigMap{BinaryData: map[string][]byte{"b": []byte(value)}}, "data[a] binaryData[b]"},
		"what the cluster of a Service adds": {service(same), service(func(s *corev1.Service) { s.Spec.ClusterIPs, s.Spec.Ports[0].NodePort = []string{"None"}, 30000 }), ""},
		"a default of a newer server":        {service(same), service(defaulted, "stsmigrate"), ""},
		"a default of the source's server":   {service(defaulted, "kube"), service(same, "stsmigrate"), "spec.trafficDistribution"},
		"what a user added to a Service":     {service(same, "kubectl"), service(defaulted, "kubectl-edit"), "spec.trafficDistribution"},
		"another port":                       {service(same, "kubectl"), service(func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 }, "stsmigrate"), "spec.ports"},
		"a token that the controller lists":  {account(func(a *corev1.ServiceAccount) { a.Secrets = []corev1.ObjectReference{{Name: "t"}} }), account(func(*corev1.ServiceAccount) {}), ""},
		"a pull secret of the destination": {account(func(*corev1.ServiceAccount) {}), account(func(a *corev1.ServiceAccount) {
			a.ImagePullSecrets = append(a.ImagePullSecrets, corev1.LocalObjectReference{Name: "registry"})
		}), ""},
		"a pull secret that is missing": {account(func(*corev1.ServiceAccount) {}), account(func(a *corev1.ServiceAccount) { a.ImagePullSecrets = nil }), "imagePullSecrets[pull]"},
		"whether a token is mounted":    {account(func(*corev1.ServiceAccount) {}), account(func(a *corev1.ServiceAccount) { a.AutomountServiceAccountToken = ptr.To(true) }), "automountServiceAccountToken"},
	} {
		got := ""
		if f := Between(move(), plans.Dependency{Kind: "Secret", Name: "pw"}, c.from, c.to); f != nil {
			got = strings.Join(f.Fields, " ")
			if text := f.Words() + f.Align(plans.Source) + f.Align(plans.Destination) + f.Word(plans.Source); strings.Contains(text, value) {
				t.Errorf("%s: it shows the value: %s", name, text)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q differs, expected %q", name, got, c.want)
		}
	}
}

func TestItSaysWhoHasChangedWhat(t *testing.T) {
	const password = `{"f:data":{"f:password":{}}}`
	pw := plans.Dependency{Kind: "Secret", Name: "pw"}
	side := func(o *corev1.Secret, manager string, hour int) *corev1.Secret {
		by(o, manager, hour, password)
		return o
	}
	for want, pair := range map[string][2]*corev1.Secret{
		"Secret/pw: data[password] differs (on the source written by kubectl-create, 2026-01-01 09:00:00 UTC; on the destination written by kubectl-patch, 2026-01-01 12:00:00 UTC): the destination's is newer": {
			side(secret("1", value), "kubectl-create", 9), side(stamped(secret("2", "new")), "kubectl-patch", 12),
		},
		"Secret/pw: data[password] differs (on the source written by kubectl-patch, 2026-01-01 12:00:00 UTC; on the destination as it was copied, 2026-01-01 10:00:00 UTC): the source's has changed since it was copied": {
			side(secret("1", "new"), "kubectl-patch", 12), side(stamped(secret("2", value)), "stsmigrate", 10),
		},
		"Secret/pw: data[password] differs (on the source written by kubectl-patch, 2026-01-01 13:00:00 UTC; on the destination written by kubectl-edit, 2026-01-01 12:00:00 UTC): the source's is newer": {
			side(secret("1", "new"), "kubectl-patch", 13), side(stamped(secret("2", value)), "kubectl-edit", 12),
		},
		"Secret/pw: data[password] differs (on the source written by an unknown client, at an unknown time; on the destination written by stsmigrate, 2026-01-01 12:00:00 UTC)": {
			secret("1", "new"), side(secret("2", value), "stsmigrate", 12),
		},
	} {
		if got := Between(move(), pw, pair[0], pair[1]).Words(); got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
}

// A word is about two states of an object and a direction. What tools write beside its content makes no other word.
func TestTheWordIsAboutTwoStatesOfAnObject(t *testing.T) {
	const password = `{"f:data":{"f:password":{}}}`
	pw := plans.Dependency{Kind: "Secret", Name: "pw"}
	word := func(from plans.Side, change func(a, b *corev1.Secret)) string {
		a, b := secret("1", value), stamped(secret("2", "new"))
		by(a, "kubectl-create", 9, password)
		by(b, "kubectl-patch", 12, password)
		change(a, b)
		return Between(move(), pw, a, b).Word(from)
	}
	first := word(plans.Destination, func(*corev1.Secret, *corev1.Secret) {})
	if !plans.IsCopyWord(first) {
		t.Errorf("%q is no word", first)
	}
	for name, c := range map[string]struct {
		change func(a, b *corev1.Secret)
		same   bool
	}{
		"a label": {func(a, b *corev1.Secret) {
			a.ResourceVersion, b.ResourceVersion = "7", "8"
			by(b, "tool", 13, `{"f:metadata":{"f:labels":{"f:tool":{}}}}`)
		}, true},
		"rotated again":       {func(_, b *corev1.Secret) { b.ManagedFields = nil; by(b, "kubectl-patch", 13, password) }, false},
		"made again":          {func(a, _ *corev1.Secret) { a.UID = "another" }, false},
		"another key":         {func(_, b *corev1.Secret) { b.Data["more"] = nil }, false},
		"unknown, and later":  {func(_, b *corev1.Secret) { b.ManagedFields = nil; b.ResourceVersion = "3" }, false},
		"rotated on the rest": {func(a, _ *corev1.Secret) { by(a, "kubectl-patch", 14, password) }, false},
	} {
		if got := word(plans.Destination, c.change); (got == first) != c.same {
			t.Errorf("%s: the word is %s, and was %s", name, got, first)
		}
	}
	if word(plans.Source, func(*corev1.Secret, *corev1.Secret) {}) == first {
		t.Error("the word for an abort is that for a move")
	}
}

// The command is one that kubectl understands: its jsonpath makes a patch of the data, with every key and no more.
func TestTheCommandThatMakesThemEqual(t *testing.T) {
	pw := plans.Dependency{Kind: "Secret", Name: "pw"}
	f := Between(move(), pw, secret("1", value), secret("2", "new"))
	got := f.Align(plans.Source)
	const begin, end = "`kubectl --context west -n mall get secret pw -o jsonpath='", "' | kubectl --context east -n shop patch secret pw --type json --patch-file /dev/stdin`"
	path, begins := strings.CutPrefix(got, begin)
	path, ends := strings.CutSuffix(path, end)
	if !begins || !ends || got != plans.Line(got) {
		t.Fatalf("got %s", got)
	}
	j := jsonpath.New("patch")
	var text bytes.Buffer
	if err := j.Parse(path); err != nil {
		t.Fatal(err)
	}
	if err := j.Execute(&text, map[string]any{"data": map[string]any{"password": "bmV3", "a": "Yg=="}}); err != nil {
		t.Fatal(err)
	}
	patch, err := yaml.YAMLToJSON(text.Bytes())
	if want := `[{"op":"add","path":"/data","value":{"a":"Yg==","password":"bmV3"}}]`; err != nil || string(patch) != want {
		t.Errorf("%s (%v), expected %s", patch, err, want)
	}
	fixed := secret("1", value)
	fixed.Immutable = ptr.To(true)
	if got := Between(move(), pw, fixed, secret("2", "new")).Align(plans.Source); got != "`kubectl --context east -n shop delete secret pw`, and make it again as it is on the destination, since it cannot be changed" {
		t.Errorf("an immutable one: %s", got)
	}
	one := move()
	one.Destination.Cluster = "1"
	service := Between(one, plans.Dependency{Kind: "Service", Name: "web"}, &corev1.Service{}, &corev1.Service{Spec: corev1.ServiceSpec{ExternalName: "x"}})
	if got := service.Align(plans.Destination); got != "`kubectl -n mall edit service web`" {
		t.Errorf("a Service: %s", got)
	}
}
