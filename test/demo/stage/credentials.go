package stage

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/cluster"
)

// Credentials creates a token for a ServiceAccount, valid for one day, and a kubeconfig that
// contains it.
func Credentials(ctx context.Context, at client.Client, c *cluster.Cluster, namespace, account string) (config *clientcmdapi.Config, token string, err error) {
	day := int64(86400)
	request := authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}
	if err := at.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}, &request); err != nil {
		return nil, "", err
	}
	if config, err = clientcmd.LoadFromFile(c.Kubeconfig); err != nil {
		return nil, "", err
	}
	for _, context := range config.Contexts {
		context.AuthInfo, context.Namespace = account, namespace
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{account: {Token: request.Status.Token}}
	return config, request.Status.Token, nil
}
