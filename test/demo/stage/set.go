package stage

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/stsmigrate/stsmigrate/test/cluster"
)

// Name is the name of the set and of its dependencies.
const Name = "web"

// Set is a StatefulSet "web" and its dependencies: a headless Service, a ConfigMap and a Secret
// that its pods read, and a PodDisruptionBudget with maxUnavailable 1.
type Set struct {
	Namespace string
	Replicas  int32
	// Claims are the names of its claim templates. All use the class cluster.SharedClass.
	Claims []string
}

func labels() map[string]string { return map[string]string{"app": Name} }

// Install creates the set and its dependencies, and waits until all its pods are ready.
func (s Set) Install(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	core := client.CoreV1()
	for _, err := range []error{
		create(ctx, core.Services(s.Namespace).Create, s.service()),
		create(ctx, core.ConfigMaps(s.Namespace).Create, s.settings()),
		create(ctx, core.Secrets(s.Namespace).Create, s.secret()),
		create(ctx, client.PolicyV1().PodDisruptionBudgets(s.Namespace).Create, s.budget(1)),
		create(ctx, client.AppsV1().StatefulSets(s.Namespace).Create, s.set()),
	} {
		if err != nil {
			return err
		}
	}
	return s.ready(ctx, client)
}

func create[T any](ctx context.Context, send func(context.Context, *T, metav1.CreateOptions) (*T, error), o *T) error {
	if _, err := send(ctx, o, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		return fmt.Errorf("create %T: %w", o, err)
	}
	return nil
}

// Manifests returns the same objects as an administrator prepares them for the destination cluster:
// the set has no ordinals yet, and its budget allows no disruption.
func (s Set) Manifests() ([]byte, error) {
	set, none := s.set(), int32(0)
	set.Spec.Replicas, set.Spec.Ordinals = &none, &appsv1.StatefulSetOrdinals{Start: s.Replicas}
	list := map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{
		s.service(), s.settings(), s.secret(), s.budget(0), set,
	}}
	return json.Marshal(list)
}

// ready waits until every pod of the set is ready and the budget has counted it.
func (s Set) ready(ctx context.Context, client kubernetes.Interface) error {
	one := fields.OneTermEqualSelector("metadata.name", Name)
	sets := cache.NewListWatchFromClient(client.AppsV1().RESTClient(), "statefulsets", s.Namespace, one)
	_, err := watchtools.UntilWithSync(ctx, sets, &appsv1.StatefulSet{}, nil, func(e watch.Event) (bool, error) {
		set, ok := e.Object.(*appsv1.StatefulSet)
		return ok && set.Status.ReadyReplicas == s.Replicas, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the pods of %s/%s: %w", s.Namespace, Name, err)
	}
	budgets := cache.NewListWatchFromClient(client.PolicyV1().RESTClient(), "poddisruptionbudgets", s.Namespace, one)
	_, err = watchtools.UntilWithSync(ctx, budgets, &policyv1.PodDisruptionBudget{}, nil, func(e watch.Event) (bool, error) {
		b, ok := e.Object.(*policyv1.PodDisruptionBudget)
		return ok && b.Status.CurrentHealthy == s.Replicas, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the budget of %s/%s: %w", s.Namespace, Name, err)
	}
	return nil
}

func (s Set) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.Namespace, Name: Name, Labels: labels()}
}

func typed(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

func (s Set) service() *corev1.Service {
	return &corev1.Service{
		TypeMeta: typed("v1", "Service"), ObjectMeta: s.meta(),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  labels(),
			Ports:     []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}
}

func (s Set) settings() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: typed("v1", "ConfigMap"), ObjectMeta: s.meta(),
		Data: map[string]string{"GREETING": "hello"},
	}
}

// Password is in the Secret of every set.
const Password = "open sesame"

func (s Set) secret() *corev1.Secret {
	return &corev1.Secret{
		TypeMeta: typed("v1", "Secret"), ObjectMeta: s.meta(),
		Data: map[string][]byte{"PASSWORD": []byte(Password)},
	}
}

func (s Set) budget(maxUnavailable int32) *policyv1.PodDisruptionBudget {
	most := intstr.FromInt32(maxUnavailable)
	return &policyv1.PodDisruptionBudget{
		TypeMeta: typed("policy/v1", "PodDisruptionBudget"), ObjectMeta: s.meta(),
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &most, Selector: &metav1.LabelSelector{MatchLabels: labels()}},
	}
}

func (s Set) set() *appsv1.StatefulSet {
	read := []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: Name}}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: Name}}},
	}
	var mounts []corev1.VolumeMount
	var claims []corev1.PersistentVolumeClaim
	for _, c := range s.Claims {
		mounts = append(mounts, corev1.VolumeMount{Name: c, MountPath: "/" + c})
		claims = append(claims, claim(c))
	}
	return &appsv1.StatefulSet{
		TypeMeta: typed("apps/v1", "StatefulSet"), ObjectMeta: s.meta(),
		Spec: appsv1.StatefulSetSpec{
			Replicas:             &s.Replicas,
			ServiceName:          Name,
			Selector:             &metav1.LabelSelector{MatchLabels: labels()},
			VolumeClaimTemplates: claims,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels()},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: Name, Image: Name, EnvFrom: read, VolumeMounts: mounts}}},
			},
		},
	}
}

func claim(name string) corev1.PersistentVolumeClaim {
	class := cluster.SharedClass
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}
