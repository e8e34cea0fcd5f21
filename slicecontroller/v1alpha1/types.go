// Package v1alpha1 contains the kind StatefulSetSlice: a StatefulSet that manages a range of
// ordinals (KEP-3335), updates several pods at once (KEP-961), counts a pod as available only
// after it has been ready for a while (KEP-2599), and recovers from a broken template (KEP-3541),
// on every version of Kubernetes.
//
// +kubebuilder:object:generate=true
// +groupName=apps.stsmigrate.dev
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="applyconfiguration"
package v1alpha1

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// GroupVersion returns the group and version of the kinds in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "apps.stsmigrate.dev", Version: "v1alpha1"}
}

// Kind returns the group, version and kind of StatefulSetSlice.
func Kind() schema.GroupVersionKind { return GroupVersion().WithKind("StatefulSetSlice") }

// StatefulSetSlice represents a set of pods with consistent identities: the ordinals from
// spec.ordinals.start on, as many as spec.replicas. Each ordinal has its own pod name and its own
// PersistentVolumeClaims. A replacement for a pod has the same name and the same claims.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:path=statefulsetslices,shortName=stss,categories=all
// +kubebuilder:printcolumn:name="Start",type=integer,JSONPath=`.spec.ordinals.start`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="the name is longer than 52 characters: with the hash of a revision appended, it would be too long for a label value"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name is no DNS label (small letters, digits and -): it is part of the hostname of each pod"
type StatefulSetSlice struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the desired behavior of the pods in this slice.
	Spec StatefulSetSliceSpec `json:"spec"`
	// status is the most recently observed status of this slice. It may be out
	// of date by some window of time.
	// +optional
	Status StatefulSetSliceStatus `json:"status,omitempty"`

	// Unknown lists the paths of the fields of the spec that were read and that this release does not know.
	// A write would lose them, and the objects created from the slice would lack them.
	Unknown []string `json:"-"`
}

// StatefulSetSliceList is a collection of StatefulSetSlices.
//
// +kubebuilder:object:root=true
type StatefulSetSliceList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StatefulSetSlice `json:"items"`
}

// StatefulSetSliceSpec is the specification of a StatefulSetSlice. It has the fields of an apps/v1
// StatefulSet, and some more. After creation, only these fields can be changed: replicas, ordinals, reserveOrdinals,
// template, updateStrategy, minReadySeconds, revisionHistoryLimit,
// persistentVolumeClaimRetentionPolicy, paused, progressDeadlineSeconds, deletionProtection,
// volumeClaimUpdatePolicy, and parts of volumeClaimTemplates. Claim templates are compared by meaning:
// 1024Mi equals 1Gi, and an empty field equals an absent one.
//
// +kubebuilder:validation:XValidation:rule="self.selector == oldSelf.selector",message="the selector cannot be changed"
// +kubebuilder:validation:XValidation:rule="self.podManagementPolicy == oldSelf.podManagementPolicy",message="podManagementPolicy cannot be changed"
// +kubebuilder:validation:XValidation:rule="has(self.serviceName) == has(oldSelf.serviceName) && (!has(self.serviceName) || self.serviceName == oldSelf.serviceName)",message="serviceName cannot be changed"
// +kubebuilder:validation:XValidation:rule="(has(self.volumeClaimTemplates) ? size(self.volumeClaimTemplates) : 0) == (has(oldSelf.volumeClaimTemplates) ? size(oldSelf.volumeClaimTemplates) : 0)",message="volumeClaimTemplates cannot be changed but for the storage request, the classes, labels and annotations"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeClaimTemplates) || !has(oldSelf.volumeClaimTemplates) || (self.volumeClaimTemplates.map(t, t.metadata.name) == oldSelf.volumeClaimTemplates.map(t, t.metadata.name) && self.volumeClaimTemplates.map(t, t.metadata.?finalizers.orValue([])) == oldSelf.volumeClaimTemplates.map(t, t.metadata.?finalizers.orValue([])))",message="volumeClaimTemplates cannot be changed but for the storage request, the classes, labels and annotations"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeClaimTemplates) || !has(oldSelf.volumeClaimTemplates) || (self.volumeClaimTemplates.map(t, t.spec.?dataSource) == oldSelf.volumeClaimTemplates.map(t, t.spec.?dataSource) && self.volumeClaimTemplates.map(t, t.spec.?dataSourceRef) == oldSelf.volumeClaimTemplates.map(t, t.spec.?dataSourceRef) && self.volumeClaimTemplates.map(t, t.spec.?selector) == oldSelf.volumeClaimTemplates.map(t, t.spec.?selector) && self.volumeClaimTemplates.map(t, t.spec.?volumeName) == oldSelf.volumeClaimTemplates.map(t, t.spec.?volumeName) && self.volumeClaimTemplates.map(t, t.spec.?accessModes.orValue([])) == oldSelf.volumeClaimTemplates.map(t, t.spec.?accessModes.orValue([])) && self.volumeClaimTemplates.map(t, t.spec.?volumeMode.orValue('Filesystem')) == oldSelf.volumeClaimTemplates.map(t, t.spec.?volumeMode.orValue('Filesystem')))",message="volumeClaimTemplates cannot be changed but for the storage request, the classes, labels and annotations"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeClaimTemplates) || !has(oldSelf.volumeClaimTemplates) || self.volumeClaimTemplates.all(t, oldSelf.volumeClaimTemplates.exists(o, o.metadata.name == t.metadata.name && (has(t.spec.resources) && has(t.spec.resources.requests) && 'storage' in t.spec.resources.requests ? has(o.spec.resources) && has(o.spec.resources.requests) && 'storage' in o.spec.resources.requests && quantity(string(t.spec.resources.requests['storage'])).compareTo(quantity(string(o.spec.resources.requests['storage']))) >= 0 : !(has(o.spec.resources) && has(o.spec.resources.requests) && 'storage' in o.spec.resources.requests))))",message="the storage request of volumeClaimTemplates can only grow"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeClaimTemplates) || !has(oldSelf.volumeClaimTemplates) || self.volumeClaimTemplates.all(t, oldSelf.volumeClaimTemplates.exists(o, o.metadata.name == t.metadata.name && (has(t.spec.resources) && has(t.spec.resources.limits) && 'storage' in t.spec.resources.limits ? has(o.spec.resources) && has(o.spec.resources.limits) && 'storage' in o.spec.resources.limits && quantity(string(t.spec.resources.limits['storage'])).compareTo(quantity(string(o.spec.resources.limits['storage']))) == 0 : !(has(o.spec.resources) && has(o.spec.resources.limits) && 'storage' in o.spec.resources.limits))))",message="volumeClaimTemplates cannot be changed but for the storage request, the classes, labels and annotations"
// +kubebuilder:validation:XValidation:rule="(has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0) || (has(self.selector.matchExpressions) && size(self.selector.matchExpressions) > 0)",message="the selector is empty, and would select every pod of the namespace"
// +kubebuilder:validation:XValidation:rule="(has(self.ordinals) ? self.ordinals.start : 0) + self.replicas + (has(self.reserveOrdinals) ? size(self.reserveOrdinals) : 0) <= 2147483648",message="the last ordinal is above 2147483647"
type StatefulSetSliceSpec struct {
	// replicas is the desired number of replicas of the template. Each replica has its own ordinal, and
	// with it a consistent identity. Must not exceed 10000. Defaults to 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// ordinals controls the numbering of the replicas (KEP-3335). By default the first replica has ordinal
	// 0, and each further replica has the next ordinal.
	// +optional
	Ordinals *Ordinals `json:"ordinals,omitempty"`

	// reserveOrdinals lists ordinals that the range leaves out. A listed ordinal has no pod: one that exists is
	// deleted like a pod outside the range. The range becomes longer by each of them that lies within it, so
	// that the slice still has spec.replicas pods. A slice that leaves out ordinals can neither be moved nor
	// become a StatefulSet. By default no ordinal is left out.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:Minimum=0
	// +listType=set
	// +optional
	ReserveOrdinals []int32 `json:"reserveOrdinals,omitempty"`

	// serviceName is the name of the headless Service that governs this slice and gives the pods their DNS
	// names. The controller neither creates the Service nor checks that it exists.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// selector is a label query over the pods of this slice. It must match the labels of the pod
	// template, and must not be empty.
	Selector *metav1.LabelSelector `json:"selector"`

	// template describes the pods that the controller creates. Its fields are those of a pod in the
	// Kubernetes version of the cluster: fields that are newer than this kind are kept.
	Template corev1.PodTemplateSpec `json:"template"`

	// volumeClaimTemplates is a list of claims that each ordinal has for itself, under the name
	// TEMPLATE-SET-ORDINAL. A claim that already exists under this name is used as it is. Each template has
	// metadata and spec. The storage request may grow, and classes, labels and annotations may change. The
	// changes apply to claims that are created from then on; volumeClaimUpdatePolicy can extend a larger
	// storage request to existing claims.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	VolumeClaimTemplates []corev1.PersistentVolumeClaimTemplate `json:"volumeClaimTemplates,omitempty"`

	// volumeClaimUpdatePolicy controls whether existing claims grow with the storage request of their
	// template. InPlace expands them as far as their storage class allows. OnClaimDelete leaves them
	// unchanged. All other changes of a template apply to new claims only. Defaults to OnClaimDelete.
	// +kubebuilder:validation:Enum=OnClaimDelete;InPlace
	// +kubebuilder:default=OnClaimDelete
	// +optional
	VolumeClaimUpdatePolicy VolumeClaimUpdatePolicy `json:"volumeClaimUpdatePolicy,omitempty"`

	// podManagementPolicy controls how pods are created and deleted when the slice is scaled, and when
	// missing pods are recreated. OrderedReady creates and deletes one pod after the other. Parallel
	// creates and deletes all of them at once. Defaults to OrderedReady.
	// +kubebuilder:validation:Enum=OrderedReady;Parallel
	// +kubebuilder:default=OrderedReady
	// +optional
	PodManagementPolicy appsv1.PodManagementPolicyType `json:"podManagementPolicy,omitempty"`

	// updateStrategy indicates the strategy that is employed to update pods when the template
	// changes. Defaults to RollingUpdate.
	// +kubebuilder:default={type: "RollingUpdate"}
	// +optional
	UpdateStrategy UpdateStrategy `json:"updateStrategy,omitempty"`

	// minReadySeconds is the minimum number of seconds for which a pod must be ready before it is
	// considered available (KEP-2599). The controller compares its own clock with that of the node.
	// Defaults to 0: a pod is available as soon as it is ready.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// revisionHistoryLimit is the maximum number of ControllerRevisions that are kept although no pod has
	// them. A negative number keeps all. Defaults to 10.
	// +kubebuilder:default=10
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// persistentVolumeClaimRetentionPolicy describes the lifecycle of the claims created from
	// volumeClaimTemplates: of claims whose ordinal is no longer in the range, below it or above it, and of
	// all claims when the slice is deleted (KEP-1847). By default, claims are retained.
	// +optional
	PersistentVolumeClaimRetentionPolicy *RetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`

	// deletionProtection keeps the pods of the slice, and the claims that would be deleted with it, when
	// the slice is deleted. The controller keeps a finalizer on the slice until this field is false, or
	// until the slice is deleted with the propagation policy Orphan. A foreground deletion, or the deletion
	// of the namespace, still deletes pods. Defaults to false.
	// +optional
	DeletionProtection bool `json:"deletionProtection,omitempty"`

	// paused indicates that updates are paused: no pod is replaced by an update. Everything else continues:
	// missing pods are recreated, and changes of the range are carried out. Defaults to false.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// progressDeadlineSeconds is the maximum time in seconds in which the slice may make no progress
	// towards its spec. After that the condition Progressing is False with reason ProgressDeadlineExceeded.
	// The time in which a pod terminates, or only has to stay ready, does not count. Nor does the time in
	// which the slice is paused. Defaults to 600.
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
}

// Ordinals describes the range of ordinals of a slice. It has spec.replicas ordinals, and those that it leaves
// out.
type Ordinals struct {
	// start is the ordinal of the first replica. Defaults to 0.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +optional
	Start int32 `json:"start"`
}

// RetentionPolicy describes when the claims of a slice are retained and when they are deleted.
type RetentionPolicy struct {
	// whenDeleted specifies what happens to all claims of the slice when the slice is deleted: Retain keeps
	// them, and Delete deletes them. Defaults to Retain.
	// +kubebuilder:validation:Enum=Retain;Delete
	// +kubebuilder:default=Retain
	// +optional
	WhenDeleted appsv1.PersistentVolumeClaimRetentionPolicyType `json:"whenDeleted,omitempty"`
	// whenScaled specifies what happens to the claims of an ordinal that leaves the range: Retain
	// keeps them, and Delete deletes them. During a migration every ordinal leaves the range: keep
	// Retain there. Defaults to Retain.
	// +kubebuilder:validation:Enum=Retain;Delete
	// +kubebuilder:default=Retain
	// +optional
	WhenScaled appsv1.PersistentVolumeClaimRetentionPolicyType `json:"whenScaled,omitempty"`
}

// VolumeClaimUpdatePolicy is a string enumeration of the policies for existing claims
// whose template changes (KEP-4650).
type VolumeClaimUpdatePolicy string

// The policies for existing claims.
const (
	OnClaimDelete VolumeClaimUpdatePolicy = "OnClaimDelete"
	InPlace       VolumeClaimUpdatePolicy = "InPlace"
)

// The update strategies.
const (
	// RollingUpdate replaces pods from the highest ordinal down, and waits for each to be available. A pod
	// that never becomes available stops the update for good.
	RollingUpdate appsv1.StatefulSetUpdateStrategyType = "RollingUpdate"
	// OnDelete replaces a pod only after a user or another controller has deleted it.
	OnDelete appsv1.StatefulSetUpdateStrategyType = "OnDelete"
	// EnforcedRollingUpdate is a RollingUpdate that does not wait for pods of an old revision: pods that a
	// broken template broke are replaced once the template is fixed (KEP-3541).
	EnforcedRollingUpdate appsv1.StatefulSetUpdateStrategyType = "EnforcedRollingUpdate"
)

// UpdateStrategy indicates the strategy by which the controller updates pods when the template changes, and
// the parameters of that strategy.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdate) || self.type == 'RollingUpdate'",message="rollingUpdate is for type RollingUpdate"
// +kubebuilder:validation:XValidation:rule="!has(self.enforcedRollingUpdate) || self.type == 'EnforcedRollingUpdate'",message="enforcedRollingUpdate is for type EnforcedRollingUpdate"
type UpdateStrategy struct {
	// type indicates the type of the update strategy: RollingUpdate, EnforcedRollingUpdate or
	// OnDelete. Defaults to RollingUpdate.
	// +kubebuilder:validation:Enum=RollingUpdate;EnforcedRollingUpdate;OnDelete
	// +kubebuilder:default=RollingUpdate
	// +optional
	Type appsv1.StatefulSetUpdateStrategyType `json:"type,omitempty"`
	// rollingUpdate communicates the parameters of the update when type is RollingUpdate.
	// +optional
	RollingUpdate *Rollout `json:"rollingUpdate,omitempty"`
	// enforcedRollingUpdate communicates the parameters of the update when type is EnforcedRollingUpdate.
	// +optional
	EnforcedRollingUpdate *Rollout `json:"enforcedRollingUpdate,omitempty"`
	// evict makes updates evict pods instead of deleting them, so that PodDisruptionBudgets are respected.
	// An update waits while an eviction is refused. Only updates evict: every other removal of a pod is a
	// deletion. It has no meaning for OnDelete. Defaults to false.
	// +optional
	Evict bool `json:"evict,omitempty"`
}

// Rollout communicates the parameters of an update.
type Rollout struct {
	// partition is the lowest ordinal that is updated. It is an ordinal, and not, as in apps/v1, an offset
	// from the start. Defaults to 0.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +optional
	Partition *int32 `json:"partition,omitempty"`
	// maxUnavailable is the maximum number of pods that the update may take down at once (KEP-961). The
	// value can be an absolute number (ex: 5) or a percentage of spec.replicas (ex: 10%). A percentage is
	// rounded down, but never below 1. Defaults to 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",message="maxUnavailable is 1 or more, or 1% to 100%"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// onFailure controls what happens when an update fails. An update fails if its progress deadline passes
	// while a pod of the new revision is not available, or if its canary halts (EnforcedRollingUpdate).
	// Halt leaves the pods as they are. Rollback returns them to the current revision until the template
	// changes, and reports it in the condition RolledBack. Defaults to Halt.
	// +kubebuilder:validation:Enum=Halt;Rollback
	// +kubebuilder:default=Halt
	// +optional
	OnFailure OnFailure `json:"onFailure,omitempty"`
}

// OnFailure is a string enumeration of what happens when an update fails.
type OnFailure string

// The values of OnFailure.
const (
	Halt     OnFailure = "Halt"
	Rollback OnFailure = "Rollback"
)

// OnFailure returns what happens when an update fails, from the block of the selected
// strategy. The default is Halt.
func (s UpdateStrategy) OnFailure() OnFailure {
	for kind, rollout := range map[appsv1.StatefulSetUpdateStrategyType]*Rollout{RollingUpdate: s.RollingUpdate, EnforcedRollingUpdate: s.EnforcedRollingUpdate} {
		if rollout != nil && kind == cmp.Or(s.Type, RollingUpdate) && rollout.OnFailure != "" {
			return rollout.OnFailure
		}
	}
	return Halt
}

// StatefulSetSliceStatus represents the current state of a StatefulSetSlice. Every field may be absent.
type StatefulSetSliceStatus struct {
	// observedGeneration is the most recent generation that the controller has acted on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// replicas is the number of pods of this slice, including terminating ones.
	// +optional
	Replicas int32 `json:"replicas"`
	// readyReplicas is the number of pods of this slice with a Ready condition.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// availableReplicas is the number of pods of this slice that have been ready
	// for at least minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`
	// currentReplicas is the number of pods of this slice with the revision indicated by
	// currentRevision, without terminating ones.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas"`
	// updatedReplicas is the number of pods of this slice with the revision indicated by
	// updateRevision, without terminating ones.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// currentRevision is the name of the ControllerRevision that was in use before the update.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
	// updateRevision is the name of the ControllerRevision of the template.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
	// failedRevision is the name of the ControllerRevision whose update was rolled back. While the template
	// has this revision, the pods have currentRevision.
	// +optional
	FailedRevision string `json:"failedRevision,omitempty"`
	// collisionCount is the count of hash collisions for this slice. The controller uses it to avoid
	// collisions when it names a new ControllerRevision. It never decreases.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// selector is spec.selector in the form that the scale subresource requires.
	// +optional
	Selector string `json:"selector,omitempty"`
	// lastProgressTime is the time at which the slice last made progress towards its spec, or began to
	// differ from it. The progress deadline counts from this time.
	// +optional
	LastProgressTime *metav1.Time `json:"lastProgressTime,omitempty"`
	// ordinals is the range that the controller has acted on, including the ordinals that it leaves out. The
	// numbers above count the pods of this range, and the pods that are leaving it.
	// +optional
	Ordinals *Range `json:"ordinals,omitempty"`
	// conditions represent the latest available observations of the slice's current state, by
	// the controller and by others.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Range is the range of the ordinals from start up to, but not including, end.
// It is empty if both are equal.
type Range struct {
	// start is the first ordinal.
	Start int64 `json:"start"`
	// end is the ordinal after the last one.
	End int64 `json:"end"`
}
