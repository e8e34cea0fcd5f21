package expanded

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/expansion"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// OldNames warns where the application is configured with names that mean something else, or nothing, on the destination:
// names in the old namespace, and short names of Services that are not there. It reads every text of the pods, and the
// ConfigMaps and Secrets that they name. Of a Secret it says the key.
func OldNames(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	s, err := look(ctx, i)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(s.unseen)
	texts, err := s.texts(i)
	if err != nil {
		return nil, err
	}
	n := s.names(i)
	for _, at := range n.stale(texts) {
		out = append(out, check.Finding{
			Level: check.Warn, Object: at, Saw: fmt.Sprintf("it names something in namespace %s", n.old), Want: "names that the move does not change", Remedy: n.remedy(i),
		})
	}
	for _, service := range n.lost {
		for _, at := range calling(texts, service) {
			out = append(out, n.short(i, service, at))
		}
	}
	out = append(out, n.links(i, texts)...)
	return append(out, n.certificates(i, s)...), nil
}

// text is one text that the pods get, and where it is.
type text struct {
	at, is string
	// told reports whether it is a word that a program is told, and not a whole file.
	told bool
}

// texts returns what the pods of the destination get: of their template, expanded, and of what it names.
func (s sides) texts(i check.Inspection) (out []text, err error) {
	all, err := expansion.Texts(expansion.Expand(s.arriving(), s.at[plans.Destination]))
	if err != nil {
		return nil, err
	}
	for _, x := range all {
		if strings.HasSuffix(x.Path, "].name") && strings.Contains(x.Path, ".env[") {
			continue
		}
		path := strings.TrimSuffix(x.Path, ".value")
		told := strings.Contains(path, ".env[") || strings.Contains(path, ".command[") || strings.Contains(path, ".args[") || strings.HasSuffix(path, ".host")
		out = append(out, text{i.Name(plans.Destination) + ": spec.template." + path, x.Is, told})
	}
	for _, d := range i.Plan.Dependencies {
		switch o := s.objects[plans.Destination][named(d)].(type) {
		case *corev1.ConfigMap:
			out = append(out, keysOf("ConfigMap", o, o.Data)...)
			out = append(out, keysOf("ConfigMap", o, o.BinaryData)...)
		case *corev1.Secret:
			out = append(out, keysOf("Secret", o, o.Data)...)
		}
	}
	return out, nil
}

func keysOf[V string | []byte](kind string, o client.Object, data map[string]V) (out []text) {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		out = append(out, text{at: fmt.Sprintf("%s %s/%s: key %s", kind, o.GetNamespace(), o.GetName(), key), is: string(data[key])})
	}
	return out
}

// names are the names that change with a move.
type names struct {
	old, next string
	// ends matches names in the old namespace, with the first label of each as its group.
	ends *regexp.Regexp
	// kept are the Services whose names in the old namespace stay as they are.
	kept map[string]bool
	// lost are the Services that the pods find by their short names on the source alone.
	lost []string
}

func (s sides) names(i check.Inspection) names {
	n := names{old: i.Plan.Source.Namespace, next: i.Plan.Destination.Namespace, kept: map[string]bool{}}
	governing := s.set.Spec.ServiceName
	var others []string
	for _, o := range s.services[plans.Source] {
		if o.Name == governing {
			continue
		}
		others = append(others, o.Name)
		selects := len(o.Spec.Selector) > 0 && labels.SelectorFromSet(o.Spec.Selector).Matches(labels.Set(s.set.Spec.Template.Labels))
		n.kept[o.Name] = joined(i) && !selects
		there := slices.ContainsFunc(s.services[plans.Destination], func(t corev1.Service) bool { return t.Name == o.Name })
		if _, comes := s.objects[plans.Destination][plans.Dependency{Kind: "Service", Name: o.Name}]; !there && !comes && len(s.unseen) == 0 {
			n.lost = append(n.lost, o.Name)
		}
	}
	if n.old != n.next {
		n.ends = staleName(append(others, governing), n.old)
	}
	return n
}

// staleName matches names in a namespace: "….NAMESPACE.svc", with or without the cluster's domain, and
// "SERVICE.NAMESPACE".
func staleName(services []string, namespace string) *regexp.Regexp {
	ns := regexp.QuoteMeta(namespace)
	full := `(?:^|([a-zA-Z0-9-]*))\.` + ns + `\.svc(?:[^a-zA-Z0-9-]|$)`
	var of []string
	for _, s := range services {
		if s != "" {
			of = append(of, regexp.QuoteMeta(s))
		}
	}
	if len(of) == 0 {
		return regexp.MustCompile(full)
	}
	return regexp.MustCompile(full + `|(?:^|[^a-zA-Z0-9-])(` + strings.Join(of, "|") + `)\.` + ns + `(?:[^a-zA-Z0-9.-]|\.?$)`)
}

// isStale reports whether a text has a name of the old namespace that the move ends.
func (n names) isStale(text string) bool {
	if n.ends == nil {
		return false
	}
	for _, m := range n.ends.FindAllStringSubmatch(text, -1) {
		if service := m[1] + strings.Join(m[2:], ""); !n.kept[service] {
			return true
		}
	}
	return false
}

// stale lists where such names are.
func (n names) stale(texts []text) (out []string) {
	for _, x := range texts {
		if n.isStale(x.is) {
			out = append(out, x.at)
		}
	}
	return out
}

func (n names) remedy(i check.Inspection) string {
	if i.Plan.Names.Mode == plans.Bridge {
		return fmt.Sprintf("both names are answered until the end: write %s there before `finalize`, or finalize with --keep-names", n.next)
	}
	return fmt.Sprintf("write %s there before the source goes", n.next)
}

// opaque are the words that stand for what is not known here.
var opaque = regexp.MustCompile(`\((Secret|address of Service|the) [^()]*\)`)

// calling lists where a Service is called by its short name, as the host that it is. A whole file is read more strictly than
// the words that a program is told: it has many.
func calling(texts []text, service string) (out []string) {
	name := regexp.QuoteMeta(service)
	const host = `(?i:host|server|addr|address|endpoint|url|uri|upstream|peer|broker|seed)s?`
	inFile := regexp.MustCompile(`(?:://|@)` + name + `(?:[:/?\s"',]|$)|(?m:^|[\s"'=,\[(/@])` + name + `:\d{2,5}\b|` + host + `["']?\s*[:=]\s*["']?` + name + `(?m:$|[\s"',])`)
	told := regexp.MustCompile(`(?:^|[\s=@/,"'(\[;])` + name + `(?:$|[\s:/,"')\];])`)
	for _, x := range texts {
		is := opaque.ReplaceAllString(x.is, "")
		if x.told && told.MatchString(is) && !strings.Contains(is, "/"+service+"/") || inFile.MatchString(is) {
			out = append(out, x.at)
		}
	}
	return out
}

// short is the finding about the short name of a Service.
func (n names) short(i check.Inspection, service, at string) check.Finding {
	f := check.Finding{
		Level: check.Warn, Object: at, Saw: fmt.Sprintf("it names Service %s of namespace %s by its short name, and namespace %s of the destination has none of that name", service, n.old, n.next),
		Want:   "a name that means the same on both sides",
		Remedy: fmt.Sprintf("make a Service %s in namespace %s there, or write a name that both clusters resolve with --patch", service, n.next),
	}
	if joined(i) {
		f.Remedy = fmt.Sprintf("write %s.%s.svc there with --patch, or make the name in namespace %s before the move\n%s -n %s create service externalname %s --external-name %s.%s.svc.cluster.local",
			service, n.old, n.next, i.Kubectl(plans.Destination), n.next, service, service, n.old)
	}
	return f
}

// linked matches a reference to a variable that the kubelet makes of a Service, and that nothing defines.
var linked = regexp.MustCompile(`\$\(([A-Z0-9_]+)_SERVICE_(HOST|PORT)(_[A-Z0-9_]+)?\)`)

// links finds the variables of Services that the pods of the destination do not get.
func (n names) links(i check.Inspection, texts []text) (out []check.Finding) {
	for _, x := range texts {
		m := linked.FindString(x.is)
		if m == "" || !x.told {
			continue
		}
		out = append(out, check.Finding{
			Level: check.Warn, Object: x.at, Saw: fmt.Sprintf("nothing in namespace %s defines %s: the kubelet makes such a variable of a Service of the pod's own namespace", n.next, m),
			Want: "the address that the pods have on the source", Remedy: "write the name of that Service and its namespace there with --patch, or make the Service in namespace " + i.Plan.Destination.Namespace,
		})
	}
	return out
}

// certificates finds certificates that are for names of one side only.
func (n names) certificates(i check.Inspection, s sides) (out []check.Finding) {
	if n.ends == nil {
		return nil
	}
	for _, d := range i.Plan.Dependencies {
		secret, ok := s.objects[plans.Destination][named(d)].(*corev1.Secret)
		if !ok {
			continue
		}
		original, _ := s.objects[plans.Source][named(d)].(*corev1.Secret)
		if original == nil {
			original = secret
		}
		for _, key := range slices.Sorted(maps.Keys(original.Data)) {
			if lacking := n.unnamed(dnsNames(original.Data[key]), dnsNames(secret.Data[key])); len(lacking) > 0 {
				out = append(out, check.Finding{
					Level: check.Warn, Object: fmt.Sprintf("Secret %s/%s: key %s", secret.Namespace, secret.Name, key), Saw: "its certificate is not for " + check.Few(lacking),
					Want:   "the names of both namespaces, as long as ordinals are on two sides: a client that asks for one of these names refuses the connection",
					Remedy: "issue it with the names of both namespaces before the move, and with those of the new one alone after `finalize`",
				})
			}
		}
	}
	return out
}

// unnamed returns the names, of those in the old namespace and the same ones in the new, that a certificate lacks.
func (n names) unnamed(was, has []string) (out []string) {
	for _, name := range was {
		if !n.isStale(name) {
			continue
		}
		for _, want := range []string{name, strings.Replace(name, "."+n.old, "."+n.next, 1)} {
			if !slices.Contains(has, want) {
				out = append(out, want)
			}
		}
	}
	return out
}

// dnsNames returns the names of the first certificate in PEM.
func dnsNames(raw []byte) []string {
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return c.DNSNames
}

// Ended warns of the names that the pods of the destination still use, and that nothing answers when the move has ended. It
// reads the set and the objects as they are there now.
func Ended(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	s, err := look(ctx, i)
	if err != nil {
		return nil, err
	}
	s.destined = i.Now.Existing
	texts, err := s.texts(i)
	if err != nil {
		return nil, err
	}
	n := s.names(i)
	kept := ""
	if i.Plan.Names.Mode == plans.Bridge {
		kept = ", or finalize with --keep-names"
	}
	var out []check.Finding
	for _, at := range n.stale(texts) {
		out = append(out, check.Finding{
			Object: at, Saw: fmt.Sprintf("it has a name in namespace %s, which stops resolving", n.old), Want: fmt.Sprintf("names in namespace %s", n.next),
			Remedy: fmt.Sprintf("write %s there and let the pods read it before you go on%s", n.next, kept),
		})
	}
	return out, nil
}
