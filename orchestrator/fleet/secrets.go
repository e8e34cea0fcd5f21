package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	kjson "sigs.k8s.io/json"

	"github.com/stsmigrate/stsmigrate/plans/weight"
)

const (
	// Label marks a Secret with a kubeconfig. Its value, if any, names the cluster of the current
	// context, and the Secret then holds only that cluster. Without a value every context has its own
	// name.
	Label = "stsmigrate.dev/cluster"
	// clusterAPI marks the Secrets of Cluster API, with the name of the cluster.
	clusterAPI = "cluster.x-k8s.io/cluster-name"
	// argoCD, with the value "cluster", marks the Secrets of Argo CD.
	argoCD = "argocd.argoproj.io/secret-type"
)

// Holds reports whether a Secret holds clusters.
func Holds(s *corev1.Secret) bool {
	_, ours := s.Labels[Label]
	return ours || s.Labels[clusterAPI] != "" && len(s.Data["value"]) > 0 || s.Labels[argoCD] == "cluster"
}

// Keep keeps in memory of a Secret that holds no clusters, such as a release of helm, only that it is there.
func Keep(s *corev1.Secret) {
	s.ManagedFields = nil
	if !Holds(s) {
		s.Data, s.Annotations, s.Labels = nil, nil, nil
	}
}

// read returns the clusters of a Secret by their names, and whether the name was given to the Secret. An
// error contains nothing of the Secret's content.
func read(s *corev1.Secret) (configs map[string]*rest.Config, given bool, err error) {
	if s.Labels[argoCD] == "cluster" {
		configs, err = fromArgoCD(s)
		return configs, true, err
	}
	kubeconfig := s.Data["kubeconfig"]
	if len(kubeconfig) == 0 {
		kubeconfig = s.Data["value"]
	}
	if len(kubeconfig) == 0 {
		return nil, false, errors.New("it has neither the key kubeconfig nor the key value")
	}
	contexts, current, err := Sanitize(kubeconfig)
	if err != nil {
		return nil, false, err
	}
	name := cmp.Or(s.Labels[Label], s.Labels[clusterAPI])
	switch {
	case name == "":
		return contexts, false, nil
	case current == "":
		return nil, false, errors.New("it has several contexts and no current one, so that the name of its label means nothing")
	}
	return map[string]*rest.Config{name: contexts[current]}, true, nil
}

// fromArgoCD reads the cluster format of Argo CD.
func fromArgoCD(s *corev1.Secret) (map[string]*rest.Config, error) {
	var c struct {
		Username           string          `json:"username"`
		Password           string          `json:"password"`
		BearerToken        string          `json:"bearerToken"`
		AWSAuthConfig      json.RawMessage `json:"awsAuthConfig"`
		ExecProviderConfig json.RawMessage `json:"execProviderConfig"`
		ProxyURL           string          `json:"proxyUrl"`
		DisableCompression bool            `json:"disableCompression"`
		TLS                struct {
			Insecure   bool   `json:"insecure"`
			ServerName string `json:"serverName"`
			CAData     []byte `json:"caData"`
			CertData   []byte `json:"certData"`
			KeyData    []byte `json:"keyData"`
		} `json:"tlsClientConfig"`
	}
	var strict []error
	err := weight.Guard(s.Data["config"], func() (err error) {
		strict, err = kjson.UnmarshalStrict(s.Data["config"], &c)
		return err
	})
	if err != nil {
		return nil, errors.New("its key config cannot be read as that of an Argo CD cluster")
	}
	if err := unknown(strict); err != nil {
		return nil, fmt.Errorf("its key config: %w", err)
	}
	name := string(s.Data["name"])
	server := &clientcmdapi.Cluster{Server: string(s.Data["server"]), InsecureSkipTLSVerify: c.TLS.Insecure, ProxyURL: c.ProxyURL}
	err = errors.Join(refuse(
		refusal{name == "", "it has no name"},
		refusal{present(c.ExecProviderConfig), "execProviderConfig runs a program: use a token or a certificate"},
		refusal{present(c.AWSAuthConfig), "awsAuthConfig is a plugin: use a token or a certificate"},
		refusal{c.Username != "" || c.Password != "", "username and password are no credentials of Kubernetes any more"},
		refusal{c.BearerToken == "" && len(c.TLS.CertData) == 0, "it has neither token nor certificate"},
		refusal{!isToken(c.BearerToken), noToken},
	), harmlessCluster(server))
	if err != nil {
		return nil, fmt.Errorf("Argo CD cluster: %w", err)
	}
	return map[string]*rest.Config{name: {
		Host: server.Server, BearerToken: c.BearerToken,
		TLSClientConfig: rest.TLSClientConfig{ServerName: c.TLS.ServerName, CAData: c.TLS.CAData, CertData: c.TLS.CertData, KeyData: c.TLS.KeyData},
	}}, nil
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
