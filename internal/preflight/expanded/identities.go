package expanded

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// An issuer gives the pods an identity whose subject is their account, its namespace and the cluster's issuer of tokens.
type issuer struct {
	// mark begins the keys of annotations and labels, and who is asked to trust the new subject.
	mark, who string
}

func issuers() []issuer {
	return []issuer{
		{"eks.amazonaws.com/role-arn", "the trust policy of that IAM role"},
		{"iam.amazonaws.com/role", "the annotation iam.amazonaws.com/permitted of the namespace"},
		{"iam.gke.io/gcp-service-account", "the binding roles/iam.workloadIdentityUser of that account"},
		{"azure.workload.identity/client-id", "a federated credential of that identity"},
		{"azure.workload.identity/use", "a federated credential of the identity"},
		{"aadpodidbinding", "an AzureIdentityBinding in the namespace"},
		{"pod-identity.alibabacloud.com/role-name", "the trust policy of that RAM role"},
		{"vault.hashicorp.com/role", "that role of Vault (bound_service_account_namespaces, and the auth mount of the cluster)"},
		{"vault.hashicorp.com/agent-inject", "the role of Vault, and its injector there"},
		{"vault.security.banzaicloud.io/vault-role", "that role of Vault"},
		{"spiffe.io/", "a registration entry of SPIRE"},
		{"conjur.org/", "the host of Conjur"},
	}
}

// Identities warns of pods that a cloud or another program outside of the cluster trusts by their account, its namespace, and
// the issuer of the cluster's tokens: after the move they have another subject.
func Identities(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	s, err := look(ctx, i)
	if err != nil {
		return nil, err
	}
	pod := s.arriving()
	name := cmp.Or(pod.Spec.ServiceAccountName, "default")
	subject := fmt.Sprintf("system:serviceaccount:%s:%s", i.Plan.Destination.Namespace, name)
	if !joined(i) {
		subject += fmt.Sprintf(", by the issuer of the cluster %s", i.Plan.Destination.Context)
	}
	account, err := accountOf(ctx, i, s, name)
	if err != nil {
		return nil, err
	}
	var out []check.Finding
	add := func(object, saw, who string) {
		out = append(out, check.Finding{
			Level: check.Warn, Object: object, Saw: saw, Want: fmt.Sprintf("%s to trust %s, and system:serviceaccount:%s:%s as well until the end", who, subject, i.Plan.Source.Namespace, name),
			Remedy: "let " + who + " trust both before the move: a pod that is not let in is Ready all the same, and its backups, keys or unsealing fail",
		})
	}
	for _, known := range issuers() {
		for _, key := range known.marks(account) {
			add(fmt.Sprintf("ServiceAccount %s: annotation %s", name, key), "it gives the pods an identity by namespace and account", known.who)
		}
		for _, key := range known.marks(pod.Annotations, pod.Labels) {
			add(fmt.Sprintf("%s: spec.template.metadata: %s", i.Name(plans.Destination), key), "it gives the pods an identity by namespace and account", known.who)
		}
	}
	for _, v := range pod.Spec.Volumes {
		for _, audience := range audiences(v) {
			add(fmt.Sprintf("%s: spec.template.spec.volumes[%s]", i.Name(plans.Destination), v.Name), fmt.Sprintf("a token of the pods is for audience %s, and has their identity by namespace and account", audience), "who takes it ("+audience+")")
		}
		if v.CSI != nil && strings.Contains(v.CSI.Driver, "spiffe") {
			add(fmt.Sprintf("%s: spec.template.spec.volumes[%s]", i.Name(plans.Destination), v.Name), "SPIRE gives the pods an identity by namespace and account", "a registration entry of SPIRE")
		}
	}
	return out, nil
}

// accountOf returns the annotations of the pods' account, of the destination where it is there.
func accountOf(ctx context.Context, i check.Inspection, s sides, name string) (map[string]string, error) {
	d := plans.Dependency{Kind: "ServiceAccount", Name: name}
	if o := s.objects[plans.Destination][d]; o != nil {
		return o.GetAnnotations(), nil
	}
	from, _, err := i.OnBoth(ctx, d)
	if from == nil || err != nil {
		return nil, check.IgnoreForbidden(err)
	}
	return from.GetAnnotations(), nil
}

// marks returns the keys by which an issuer is known.
func (k issuer) marks(of ...map[string]string) []string {
	found := map[string]bool{}
	for _, m := range of {
		for key, v := range m {
			if v != "false" && (key == k.mark || strings.HasSuffix(k.mark, "/") && strings.HasPrefix(key, k.mark)) {
				found[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// audiences returns for whom the tokens of a volume are, apart from the API server.
func audiences(v corev1.Volume) (out []string) {
	if v.Projected == nil {
		return nil
	}
	for _, p := range v.Projected.Sources {
		if t := p.ServiceAccountToken; t != nil && t.Audience != "" {
			out = append(out, t.Audience)
		}
	}
	return out
}
