package bed

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// The path of the shared folder in the nodes, and the file in it that records the events of each
// volume.
const (
	shared  = "/shared"
	backend = "backend.jsonl"
)

// installStorage creates the storage classes of the local test bed and the programs that serve
// them: a provisioner, and a driver on each node.
func (c *Cluster) installStorage(ctx context.Context) error {
	// The node image's own classes provide storage of a single node, whatever their names are.
	if err := c.Client.DeleteAllOf(ctx, &storagev1.StorageClass{}); err != nil {
		return err
	}
	if err := cluster.InstallStorage(ctx, c.Config); err != nil {
		return err
	}
	own := metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "csi"}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: own},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: own.Name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: own.Namespace, Name: own.Name}},
		},
		c.provisioner(), driver(),
	} {
		if err := c.Client.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func mount(path string, both bool) (corev1.Volume, corev1.VolumeMount) {
	folder, name := corev1.HostPathDirectory, "v"
	m := corev1.VolumeMount{MountPath: path}
	if both {
		way := corev1.MountPropagationBidirectional
		m.MountPropagation, name = &way, "w"
	}
	m.Name = name
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &folder}}}, m
}

func (c *Cluster) provisioner() *appsv1.Deployment {
	labels := map[string]string{"app": "csi-provisioner"}
	volume, mounted := mount(shared, false)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "csi-provisioner"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				ServiceAccountName: "csi", Volumes: []corev1.Volume{volume},
				// The drain of a node must not stop the provisioner.
				NodeName: c.Name + "-control-plane", Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{
					Name: "csi", Image: Image("csi"), ImagePullPolicy: corev1.PullNever,
					Args: []string{"provision", c.Name, shared + "/" + backend}, VolumeMounts: []corev1.VolumeMount{mounted},
				}},
			}},
		},
	}
}

func driver() *appsv1.DaemonSet {
	labels, yes := map[string]string{"app": "csi-node"}, true
	kubelet, kubeletMount := mount("/var/lib/kubelet", true)
	volume, mounted := mount(shared, false)
	inwards := corev1.MountPropagationHostToContainer // it sees the file systems of single volumes (Narrow)
	mounted.MountPropagation = &inwards
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "csi-node"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				HostNetwork: true, Volumes: []corev1.Volume{kubelet, volume},
				PriorityClassName: "system-node-critical", // a kubelet without room on its disk must not evict it
				Tolerations:       []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{
					Name: "csi", Image: Image("csi"), ImagePullPolicy: corev1.PullNever,
					Args:            []string{"node", shared, cluster.Driver, cluster.AttachDriver},
					Env:             []corev1.EnvVar{{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}},
					SecurityContext: &corev1.SecurityContext{Privileged: &yes},
					VolumeMounts:    []corev1.VolumeMount{kubeletMount, mounted},
				}},
			}},
		},
	}
}
