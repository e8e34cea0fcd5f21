package owners

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWhatSomethingMakesIsRecognised(t *testing.T) {
	yes := true
	secret := func(change func(*corev1.Secret)) client.Object {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Type: corev1.SecretTypeOpaque}
		change(s)
		return s
	}
	owned := func(kind string, controller *bool) client.Object {
		return secret(func(s *corev1.Secret) {
			s.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "web-tls", Controller: controller}}
		})
	}
	noted := func(key, value string) client.Object {
		return secret(func(s *corev1.Secret) { s.Annotations = map[string]string{key: value} })
	}
	labelled := func(key, value string) client.Object {
		return secret(func(s *corev1.Secret) { s.Labels = map[string]string{key: value} })
	}
	tests := map[string]struct {
		object client.Object
		want   string
	}{
		"a person's":                        {secret(func(*corev1.Secret) {}), ""},
		"a person's, with marks of others":  {noted("example.com/certificate-name", "web"), ""},
		"the release of a chart":            {secret(func(s *corev1.Secret) { s.Type = "helm.sh/release.v1" }), "Helm, as the record of a release"},
		"a certificate":                     {noted("cert-manager.io/certificate-name", "web-tls"), "Certificate web-tls of cert-manager"},
		"a certificate by its owner":        {owned("Certificate", &yes), "Certificate web-tls of cert-manager"},
		"an external secret":                {owned("ExternalSecret", &yes), "ExternalSecret web-tls of External Secrets"},
		"an external secret by its label":   {labelled("reconcile.external-secrets.io/managed", "true"), "ExternalSecret web of External Secrets"},
		"no external secret any more":       {labelled("reconcile.external-secrets.io/managed", "false"), ""},
		"an external secret by its hash":    {noted("reconcile.external-secrets.io/data-hash", "51ad"), "ExternalSecret web of External Secrets"},
		"a sealed secret":                   {owned("SealedSecret", nil), "SealedSecret web-tls of Sealed Secrets"},
		"a sealed secret by its annotation": {noted("sealedsecrets.bitnami.com/managed", "true"), "SealedSecret web of Sealed Secrets"},
		"a trust bundle":                    {labelled("trust.cert-manager.io/bundle", "roots"), "Bundle roots of trust-manager"},
		"somebody else's controller":        {owned("Vault", &yes), "Vault web-tls, which controls it"},
		"an owner that does not control":    {owned("Vault", nil), ""},
		"a ConfigMap of a bundle": {
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "roots", OwnerReferences: []metav1.OwnerReference{{Kind: "Bundle", Name: "roots", Controller: &yes}}}},
			"Bundle roots of trust-manager",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := GeneratedBy(tt.object); got != tt.want {
				t.Errorf("made by %q, expected %q", got, tt.want)
			}
		})
	}
}
