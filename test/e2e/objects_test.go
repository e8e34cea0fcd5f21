//go:build e2e

package e2e

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/e2e/bed"
)

func fromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func claim(name, class string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}

// statefulSet returns a set with one container, which is ready when it responds at a path.
func (s fixture) statefulSet(c corev1.Container, ready string, port int32, claims ...corev1.PersistentVolumeClaim) *appsv1.StatefulSet {
	c.ImagePullPolicy = corev1.PullNever
	c.Env = append(c.Env, fromField("POD_NAME", "metadata.name"), fromField("POD_NAMESPACE", "metadata.namespace"))
	c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 5, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: ready, Port: intstr.FromInt32(port)}}}
	for _, v := range claims {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name})
	}
	labels := map[string]string{"app": s.set}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.source, Name: s.set, Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: s.set, Replicas: ptr.To(s.replicas), PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: labels}, VolumeClaimTemplates: claims,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To(int64(8)), Containers: []corev1.Container{c},
			}},
		},
	}
}

// around returns the headless Service of the set and its PodDisruptionBudget.
func (s fixture) around(unready bool, ports ...int32) []client.Object {
	labels := map[string]string{"app": s.set}
	own := metav1.ObjectMeta{Namespace: s.source, Name: s.set, Labels: labels}
	service := &corev1.Service{ObjectMeta: own, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: labels, PublishNotReadyAddresses: unready}}
	for _, p := range ports {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", p), Port: p})
	}
	return []client.Object{service, &policyv1.PodDisruptionBudget{ObjectMeta: own, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: ptr.To(intstr.FromInt(s.d)), Selector: &metav1.LabelSelector{MatchLabels: labels},
	}}}
}

// dataSet returns a set of the data application with two volumes per replica.
func (s fixture) dataSet(class string, args ...string) *appsv1.StatefulSet {
	args = append([]string{"-peers", strings.Join(s.hosts(), ",")}, args...)
	return s.statefulSet(corev1.Container{Name: "data", Image: bed.Image("data"), Args: append(args, "/data", "/logs")}, "/ready", 8080, claim("data", class), claim("logs", class))
}
