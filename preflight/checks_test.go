package preflight

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/preflight/checktest"
)

func TestClaimsWithNamesOfEphemeralVolumesAreFound(t *testing.T) {
	const nfs = "spec: {nfs: {server: files, path: /a}}"
	other := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web-1-scratch"}}
	far := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web-7-scratch"}}
	checktest.Estate{Spec: "{containers: [{name: web}], volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast, resources: {requests: {storage: 5Gi}}}}}}]}", Volumes: []string{nfs, nfs}, There: []client.Object{other, far}}.Finds(t, DestinationFree, "FAIL ...claim mall/web-1-scratch: it exists on the destination")
}
