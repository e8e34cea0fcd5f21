// Package v1alpha1 has the kind StatefulSetSlice: a StatefulSet that keeps a range of
// ordinals (KEP-3335), updates several pods at once (KEP-961), counts a pod after it has
// been ready for a while (KEP-2599), and recovers from a broken template (KEP-3541), on
// every version of Kubernetes.
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

// GroupVersion is that of the kinds in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "apps.stsmigrate.dev", Version: "v1alpha1"}
}

// Kind is that of StatefulSetSlice.
func Kind() schema.GroupVersionKind { return GroupVersion().WithKind("StatefulSetSlice") }

// StatefulSetSlice keeps the pods of the ordinals from spec.ordinals.start on, as many as
// spec.replicas, each with its own name and its own claims.
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
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="the name is longer than 52 characters: with the hash of a revision behind it, it would be no label value any more"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name is no DNS label (small letters, digits and -): it is part of the hostname of each pod"
type StatefulSetSlice struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	Spec StatefulSetSliceSpec `json:"spec"`
	// Status is what there is. It may be some moments old.
	// +optional
	Status StatefulSetSliceStatus `json:"status,omitempty"`

	// Unknown has the paths of the fields of the spec that were read and that this release
	// does not know. They would be lost in a write, and left out of what is made of the slice.
	Unknown []string `json:"-"`
}

// StatefulSetSliceList is a list of them.
//
// +kubebuilder:object:root=true
type StatefulSetSliceList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StatefulSetSlice `json:"items"`
}

// StatefulSetSliceSpec is that of an apps/v1 StatefulSet, and more. Of what is there,
// replicas, ordinals, template, updateStrategy, minReadySeconds, revisionHistoryLimit,
// persistentVolumeClaimRetentionPolicy, paused, progressDeadlineSeconds, deletionProtection and volumeClaimUpdatePolicy can be changed, and parts of the claim templates. Claim templates are compared by what
// they mean: 1024Mi is 1Gi, and what is empty is not there.
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
// +kubebuilder:validation:XValidation:rule="(has(self.ordinals) ? self.ordinals.start : 0) + self.replicas <= 2147483648",message="the last ordinal is above 2147483647"
type StatefulSetSliceSpec struct {
	// Replicas is the number of ordinals. Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Ordinals says where the range begins (KEP-3335). Default: at 0.
	// +optional
	Ordinals *Ordinals `json:"ordinals,omitempty"`

	// ServiceName is the headless Service that gives the pods their names. It is neither
	// made nor looked for.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// Selector finds the pods. It must match the labels of the template.
	Selector *metav1.LabelSelector `json:"selector"`

	// Template is what pods are made from. It is what the version of Kubernetes knows of
	// a pod: fields that are newer than this kind are kept.
	Template corev1.PodTemplateSpec `json:"template"`

	// VolumeClaimTemplates are claims that each ordinal has for itself, by the name
	// TEMPLATE-SET-ORDINAL. One that is there is used as it is. Each has metadata and spec. What is asked for of storage can
	// grow, and classes, labels and annotations can change, for claims that are made from then on.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	VolumeClaimTemplates []corev1.PersistentVolumeClaimTemplate `json:"volumeClaimTemplates,omitempty"`

	// VolumeClaimUpdatePolicy says whether claims that are there grow with the storage request of their template (InPlace), as
	// far as their storage class allows, or stay as they are (OnClaimDelete, the default). All else of a template is for new
	// claims.
	// +kubebuilder:validation:Enum=OnClaimDelete;InPlace
	// +kubebuilder:default=OnClaimDelete
	// +optional
	VolumeClaimUpdatePolicy VolumeClaimUpdatePolicy `json:"volumeClaimUpdatePolicy,omitempty"`

	// PodManagementPolicy says whether pods come and go one after the other
	// (OrderedReady, the default) or all at once (Parallel).
	// +kubebuilder:validation:Enum=OrderedReady;Parallel
	// +kubebuilder:default=OrderedReady
	// +optional
	PodManagementPolicy appsv1.PodManagementPolicyType `json:"podManagementPolicy,omitempty"`

	// UpdateStrategy says how pods get a changed template. Default RollingUpdate.
	// +kubebuilder:default={type: "RollingUpdate"}
	// +optional
	UpdateStrategy UpdateStrategy `json:"updateStrategy,omitempty"`

	// MinReadySeconds is for how many seconds a pod has to be ready to be available
	// (KEP-2599). It is the controller's clock against that of the node. Default 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// RevisionHistoryLimit is how many ControllerRevisions are kept that no pod is of;
	// a negative number keeps all. Default 10.
	// +kubebuilder:default=10
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// PersistentVolumeClaimRetentionPolicy says what becomes of claims whose ordinal is
	// no longer in the range, on either side, and of all of them when the slice is
	// deleted (KEP-1847). Default: they are retained.
	// +optional
	PersistentVolumeClaimRetentionPolicy *RetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`

	// DeletionProtection lets the pods of the slice, and the claims that would go with it, live on when the slice is deleted:
	// the controller keeps a finalizer on it until this is false, or it is deleted with the propagation policy Orphan. A
	// deletion in the foreground, or of the namespace, deletes pods all the same. Default false.
	// +optional
	DeletionProtection bool `json:"deletionProtection,omitempty"`

	// Paused keeps an update from going on: no pod is replaced for it. All else goes on:
	// pods that are gone are made again, and the range is followed.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// ProgressDeadlineSeconds is for how long the slice may come no nearer to its spec
	// before the condition Progressing is False with reason ProgressDeadlineExceeded. The
	// time in which a pod terminates, or only has to stay ready, does not count, nor does
	// that in which the slice is paused. Default 600.
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
}

// Ordinals is a range: as many as there are replicas.
type Ordinals struct {
	// Start is the first ordinal. Default 0.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +optional
	Start int32 `json:"start"`
}

// RetentionPolicy says for two ends of a claim's use whether it is kept.
type RetentionPolicy struct {
	// WhenDeleted is for all claims, when the slice is deleted.
	// +kubebuilder:validation:Enum=Retain;Delete
	// +kubebuilder:default=Retain
	// +optional
	WhenDeleted appsv1.PersistentVolumeClaimRetentionPolicyType `json:"whenDeleted,omitempty"`
	// WhenScaled is for the claims of an ordinal that leaves the range. In a migration
	// that is every ordinal: keep it at Retain there.
	// +kubebuilder:validation:Enum=Retain;Delete
	// +kubebuilder:default=Retain
	// +optional
	WhenScaled appsv1.PersistentVolumeClaimRetentionPolicyType `json:"whenScaled,omitempty"`
}

// VolumeClaimUpdatePolicy says what becomes of claims that are there when their template changes (KEP-4650).
type VolumeClaimUpdatePolicy string

// What becomes of claims that are there.
const (
	OnClaimDelete VolumeClaimUpdatePolicy = "OnClaimDelete"
	InPlace       VolumeClaimUpdatePolicy = "InPlace"
)

// The update strategies.
const (
	// RollingUpdate replaces pods from the highest ordinal down, and waits for each to be
	// available. One that never becomes available stops it for good.
	RollingUpdate appsv1.StatefulSetUpdateStrategyType = "RollingUpdate"
	// OnDelete replaces pods when somebody else deletes them.
	OnDelete appsv1.StatefulSetUpdateStrategyType = "OnDelete"
	// EnforcedRollingUpdate is RollingUpdate that waits for no pod of an old revision:
	// what a broken template has broken is replaced once the template is mended
	// (KEP-3541).
	EnforcedRollingUpdate appsv1.StatefulSetUpdateStrategyType = "EnforcedRollingUpdate"
)

// UpdateStrategy says how pods get a changed template.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdate) || self.type == 'RollingUpdate'",message="rollingUpdate is for type RollingUpdate"
// +kubebuilder:validation:XValidation:rule="!has(self.enforcedRollingUpdate) || self.type == 'EnforcedRollingUpdate'",message="enforcedRollingUpdate is for type EnforcedRollingUpdate"
type UpdateStrategy struct {
	// Type is RollingUpdate (the default), EnforcedRollingUpdate or OnDelete.
	// +kubebuilder:validation:Enum=RollingUpdate;EnforcedRollingUpdate;OnDelete
	// +kubebuilder:default=RollingUpdate
	// +optional
	Type appsv1.StatefulSetUpdateStrategyType `json:"type,omitempty"`
	// RollingUpdate is how far and how fast, for that type.
	// +optional
	RollingUpdate *Rollout `json:"rollingUpdate,omitempty"`
	// EnforcedRollingUpdate is the same for its type.
	// +optional
	EnforcedRollingUpdate *Rollout `json:"enforcedRollingUpdate,omitempty"`
	// Evict lets an update evict pods rather than delete them, so that PodDisruptionBudgets hold. An eviction that is
	// refused is waited for. Only updates evict: all else deletes pods as ever. It has no meaning for OnDelete. Default false.
	// +optional
	Evict bool `json:"evict,omitempty"`
}

// Rollout says how far an update goes and how fast.
type Rollout struct {
	// Partition is the lowest ordinal that is updated: an ordinal, and not, as in
	// apps/v1, an offset from the start. Default 0.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +optional
	Partition *int32 `json:"partition,omitempty"`
	// MaxUnavailable is how many pods the update may take down at once (KEP-961): a number
	// of pods, or a percentage of spec.replicas, rounded down and never below 1.
	// Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",message="maxUnavailable is 1 or more, or 1% to 100%"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// OnFailure is what becomes of an update that fails: whose progress deadline passes
	// while a pod of the new revision is not available, or whose canary halts
	// (EnforcedRollingUpdate). Halt leaves the pods as they are. Rollback gives them the
	// current revision again, as the condition RolledBack says, until the template changes.
	// Default Halt.
	// +kubebuilder:validation:Enum=Halt;Rollback
	// +kubebuilder:default=Halt
	// +optional
	OnFailure OnFailure `json:"onFailure,omitempty"`
}

// OnFailure is what becomes of an update that fails.
type OnFailure string

// What becomes of an update that fails.
const (
	Halt     OnFailure = "Halt"
	Rollback OnFailure = "Rollback"
)

// OnFailure is what becomes of an update that fails, with the strategy that is acted on.
func (s UpdateStrategy) OnFailure() OnFailure {
	for kind, rollout := range map[appsv1.StatefulSetUpdateStrategyType]*Rollout{RollingUpdate: s.RollingUpdate, EnforcedRollingUpdate: s.EnforcedRollingUpdate} {
		if rollout != nil && kind == cmp.Or(s.Type, RollingUpdate) && rollout.OnFailure != "" {
			return rollout.OnFailure
		}
	}
	return Halt
}

// StatefulSetSliceStatus is what there is. Every field may be absent.
type StatefulSetSliceStatus struct {
	// ObservedGeneration is the generation of the spec that was acted on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas is the number of pods, terminating ones included.
	// +optional
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is the number of ready pods.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// AvailableReplicas is the number of pods that have been ready for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`
	// CurrentReplicas is the number of pods of currentRevision that are not terminating.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas"`
	// UpdatedReplicas is the number of pods of updateRevision that are not terminating.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// CurrentRevision is the ControllerRevision before the update.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
	// UpdateRevision is the ControllerRevision of the template.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
	// FailedRevision is the ControllerRevision whose update was rolled back. While it is that
	// of the template, pods are of currentRevision.
	// +optional
	FailedRevision string `json:"failedRevision,omitempty"`
	// CollisionCount keeps the names of ControllerRevisions apart. It never falls.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// Selector is spec.selector as the scale subresource wants it.
	// +optional
	Selector string `json:"selector,omitempty"`
	// LastProgressTime is when the slice last came nearer to its spec, or began to differ from
	// it. The progress deadline counts from there.
	// +optional
	LastProgressTime *metav1.Time `json:"lastProgressTime,omitempty"`
	// Ordinals is the range that was acted on: what is counted above is of its pods, and of those that leave it.
	// +optional
	Ordinals *Range `json:"ordinals,omitempty"`
	// Conditions are those of the controller and of others.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Range are the ordinals from start up to, and without, end. It is empty where they are the same.
type Range struct {
	// Start is the first ordinal.
	Start int64 `json:"start"`
	// End is the one behind the last.
	End int64 `json:"end"`
}
