// Package v1alpha1 contains the kind StatefulSetMigration, with which users and Git request a migration from an
// orchestrator. The CustomResourceDefinition is generated from it. Programs read the spec as a plans.Declaration,
// strictly, and the status as it stands here (package records).
//
// +groupName=stsmigrate.dev
// +versionName=v1alpha1
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/plans"
)

// StatefulSetMigration asks the orchestrator of its namespace to move a set, or the one that serves the namespace. In the
// namespace of the orchestrator its name is the name of the plan, and elsewhere NAMESPACE.NAME is.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=statefulsetmigrations,shortName=stsm
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Direction",type=string,JSONPath=`.spec.direction`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.status.source`
// +kubebuilder:printcolumn:name="Destination",type=string,JSONPath=`.status.destination`
// +kubebuilder:printcolumn:name="Hash",type=string,JSONPath=`.status.hash`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.endsWith('-journal') && !self.metadata.name.endsWith('-timeline') && !self.metadata.name.startsWith('adopt-') && self.metadata.name != 'consent'",message="the name of a plan must not end with -journal or -timeline, must not begin with adopt-, and must not be consent"
// +kubebuilder:validation:XValidation:rule="self.spec.direction == oldSelf.spec.direction || !(oldSelf.?status.?direction.orValue('Move') in ['Abort', 'Finalize']) || self.spec.direction == oldSelf.status.direction || !(oldSelf.?status.?state.orValue(\"\") in ['Finalized', 'Aborted']) && (self.spec.direction == 'Abort' || self.spec.direction == 'Move' && has(self.spec.request) && (!has(oldSelf.spec.request) || self.spec.request.id != oldSelf.spec.request.id))",message="the direction of the plan can become Move again only together with a new spec.request.id",messageExpression="'the direction of the plan is ' + oldSelf.status.direction + ': it can become Move again only together with a new spec.request.id, Abort only while it is Finalize, and none once the plan has ended'"
type StatefulSetMigration struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is moved, where to and how, and what the user requests of the plan. After the approval only
	// direction, paused, keepNames and request have an effect.
	Spec StatefulSetMigrationSpec `json:"spec"`
	// What the orchestrator has last reported about the plan.
	// +optional
	Status StatefulSetMigrationStatus `json:"status,omitzero"`
}

// StatefulSetMigrationSpec says what is moved, where to and how, and what the user requests of the plan.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.approvedHash) || has(self.approvedHash) && self.approvedHash == oldSelf.approvedHash",fieldPath=".approvedHash",message="the approved hash cannot change; for another plan delete this object and create a new one"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.approvedHash) || self.source == oldSelf.source",fieldPath=".source",message="this field cannot change after the approval; abort the plan and create a new object"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.approvedHash) || (has(self.destination.context) ? has(oldSelf.destination.context) && self.destination.context == oldSelf.destination.context : !has(oldSelf.destination.context))",fieldPath=".destination.context",message="this field cannot change after the approval; abort the plan and create a new object"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.approvedHash) || (has(self.destination.__namespace__) ? has(oldSelf.destination.__namespace__) && self.destination.__namespace__ == oldSelf.destination.__namespace__ : !has(oldSelf.destination.__namespace__))",fieldPath=".destination.namespace",message="this field cannot change after the approval; abort the plan and create a new object"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.approvedHash) || (has(self.destination.kind) ? has(oldSelf.destination.kind) && self.destination.kind == oldSelf.destination.kind : !has(oldSelf.destination.kind))",fieldPath=".destination.kind",message="this field cannot change after the approval; abort the plan and create a new object"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.approvedHash) || (has(self.maxUnavailable) ? has(oldSelf.maxUnavailable) && self.maxUnavailable == oldSelf.maxUnavailable : !has(oldSelf.maxUnavailable))",fieldPath=".maxUnavailable",message="this field cannot change after the approval; abort the plan and create a new object"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.approvedHash) || (has(self.window) ? has(oldSelf.window) && self.window == oldSelf.window : !has(oldSelf.window))",fieldPath=".window",message="this field cannot change after the approval; abort the plan and create a new object"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.approvedHash) || (has(self.names) ? has(oldSelf.names) && self.names == oldSelf.names : !has(oldSelf.names))",fieldPath=".names",message="this field cannot change after the approval; abort the plan and create a new object"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.approvedHash) || (has(self.twins) ? has(oldSelf.twins) && self.twins == oldSelf.twins : !has(oldSelf.twins))",fieldPath=".twins",message="this field cannot change after the approval; abort the plan and create a new object"
// +kubebuilder:validation:XValidation:rule="self.source.name == self.destination.?name.orValue(self.source.name)",message="pods keep their names, so the sets must have one name"
type StatefulSetMigrationSpec struct {
	// The set that moves, and its cluster.
	Source Source `json:"source"`
	// The place that the set moves to. An omitted field is as in the source.
	Destination Destination `json:"destination"`
	// How many ordinals may be unavailable at once, over both sides together: a number from 1, or a
	// percentage of the ordinals, rounded up. The default is what the PodDisruptionBudget of the source
	// allows, or 1 without one.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// How many ordinals move together, at most maxUnavailable. The default is 0, which means 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	// +optional
	Window int32 `json:"window,omitempty"`
	// How pods are found while they are on two sides. bridge mirrors their addresses, mcs exports the
	// Service by Multi-Cluster Services, and none leaves names unchanged. The default is bridge where the
	// set has a headless Service.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=6
	// +kubebuilder:validation:Enum=bridge;mcs;none
	// +optional
	Names plans.NameMode `json:"names,omitempty"`
	// Makes the Services by which clients find the pods on the destination too, where none has their name, for the
	// cluster alone: without the addresses and ports that others have given them. By default none is made.
	// +optional
	Twins bool `json:"twins,omitempty"`
	// How the places of the ordinals are taken before they leave: by a pod with their images, resources and
	// rules that does nothing. By default none is.
	// +optional
	Placeholder Placeholder `json:"placeholder,omitzero"`
	// Claim templates whose ordinals start without data on the destination, and whose data the
	// application replicates again. By default all volumes move.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Empty []string `json:"empty,omitempty"`
	// The names of checks whose findings are accepted. By default no finding is.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Ignore []string `json:"ignore,omitempty"`
	// Names and values of storage objects that differ in the destination's cluster. A name without an
	// entry stays as it is. Must be left out within one cluster.
	// +optional
	Storage Storage `json:"storage,omitzero"`
	// Questions to the application, asked for every ordinal before it leaves or after it has arrived.
	// Each has exactly one of exec, httpGet and job. A question may be asked more than once
	// (docs/gates.md).
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Gates []Gate `json:"gates,omitempty"`
	// Move moves the set to the destination. Abort moves it back to the source. Finalize cleans up the
	// source once every ordinal is on the destination, and cannot be undone once the source set is being
	// deleted. A plan that is being aborted or finalized becomes Move again only together with a new
	// request.
	// +kubebuilder:validation:Enum=Move;Abort;Finalize
	// +kubebuilder:default=Move
	// +optional
	Direction plans.Direction `json:"direction,omitempty"`
	// Pauses the plan where no ordinal is in flight.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// Keeps the old names after Finalize.
	// +optional
	KeepNames bool `json:"keepNames,omitempty"`
	// Carries the plan out step by step, without anything that only saves time or lets evictions through
	// sooner. It may be changed at any time, and applies from the next write on.
	// +optional
	Careful bool `json:"careful,omitempty"`
	// The status.hash of the plan that the user has reviewed. Without it nothing begins.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-f]+$`
	// +optional
	ApprovedHash string `json:"approvedHash,omitempty"`
	// A one-time request. It resumes a plan that is blocked, split, or paused by pauseAfter.
	// +optional
	Request *Request `json:"request,omitempty"`
}

// Source is the set that moves, and its cluster.
type Source struct {
	// The name of a Secret that has the kubeconfig of the cluster, or of a context in such a Secret. The
	// default is in-cluster, the cluster of the orchestrator.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Context string `json:"context,omitempty"`
	// The namespace of the set. It has no default.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// The name of the set.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// The kind of the set. The default is StatefulSet.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Enum=StatefulSet;StatefulSetSlice
	// +optional
	Kind string `json:"kind,omitempty"`
}

// Destination is the place that the set moves to.
type Destination struct {
	// The name of a Secret that has the kubeconfig of the cluster, or of a context in such a Secret. The
	// default is the context of the source.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Context string `json:"context,omitempty"`
	// The namespace that the set moves to. The default is the namespace of the source.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// The name of the set. Pods keep their names, so it must be the name of the source.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	// +optional
	Name string `json:"name,omitempty"`
	// The kind that the set has there. The default is the kind of the source.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Enum=StatefulSet;StatefulSetSlice
	// +optional
	Kind string `json:"kind,omitempty"`
	// Patches for the set on the destination. They are applied in this order, as in a kustomization.
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Patches []Patch `json:"patches,omitempty"`
}

// Placeholder is how the places of the ordinals are taken before they leave.
// +kubebuilder:validation:XValidation:rule="self.?proof.orValue('auto') != 'off' || !has(self.image) && !has(self.priorityClass) && !has(self.reach)",message="image, priorityClass and reach belong to a placeholder, and proof is off: none is made"
type Placeholder struct {
	// What is proven before an ordinal leaves. schedule: a node, the quotas and the admission chain have said
	// yes to its pod. warm: its images are pulled too, and its ConfigMaps, Secrets and other volumes are
	// mounted. "off", in quotes, since YAML takes the bare word for false: nothing is. auto: warm between two
	// clusters, and where patches change where the pods run, and otherwise schedule; off where no place can be
	// taken, which the plan says. The default is auto.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Enum=off;schedule;warm;auto
	// +optional
	Proof plans.Proof `json:"proof,omitempty"`
	// An image with the program that waits, as /placeholder. With none the containers are told to run what no
	// image has: they fail to start after their images are pulled and their volumes are mounted. The default is
	// the image of the release that makes the plan.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`
	// A PriorityClass below all others, by which whatever needs the room may take it.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PriorityClass string `json:"priorityClass,omitempty"`
	// What must be reached by TCP from the place of an ordinal before it leaves: HOST:PORT; peers for the other
	// ordinals on the ports of their containers, by the names that they have; or peers:PORT. The program that
	// waits asks, so it needs an image. By default nothing is asked.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=260
	// +kubebuilder:validation:items:Pattern=`^(peers|.+:[0-9]{1,5})$`
	// +optional
	Reach []string `json:"reach,omitempty"`
}

// Storage has the names and values of storage objects that differ in the destination's cluster.
type Storage struct {
	// Names of StorageClasses of the source, and those of the destination.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Classes map[string]Name `json:"classes,omitempty"`
	// Names of CSI drivers of the source, and those of the destination.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Drivers map[string]Name `json:"drivers,omitempty"`
	// Secrets that CSI drivers use on the source, and those on the destination, each as namespace/name.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Secrets map[string]SecretName `json:"secrets,omitempty"`
	// For a key of the attributes of CSI volumes: values of the source, and those of the destination.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	VolumeAttributes map[string]AttributeValues `json:"volumeAttributes,omitempty"`
	// Labels of nodes that volumes are bound to, where the key or a value differs.
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Topology []Topology `json:"topology,omitempty"`
}

// Gate is a question to the application.
type Gate struct {
	// The name of the gate, which no other gate of the plan has.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// BeforeShrink asks before the pod of an ordinal is removed from its side. AfterGrow asks after the
	// pod is available on the other side.
	// +kubebuilder:validation:Enum=BeforeShrink;AfterGrow
	When plans.When `json:"when"`
	// A command in a pod. It passes with exit code 0.
	// +optional
	Exec *Exec `json:"exec,omitempty"`
	// A request to a pod. It passes with a status from 200 to 399.
	// +optional
	HTTPGet *HTTPGet `json:"httpGet,omitempty"`
	// The spec of a Job of batch/v1 in the namespace of the ordinal. It passes when the Job is complete.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Job *runtime.RawExtension `json:"job,omitempty"`
	// The pod that is asked: AnyOther for any available pod that does not move at that moment, or a fixed
	// ordinal. The default is the pod of the ordinal that moves. Must be left out for a job.
	// +optional
	Pod *intstr.IntOrString `json:"pod,omitempty"`
	// A text that must occur in the standard output of the command, or in the body of the response. Must
	// be left out for a job.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	Expect string `json:"expect,omitempty"`
	// A condition in CEL over code, text and body, such as body.state == "running". Must be left out for
	// a job.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Expression string `json:"expression,omitempty"`
	// How long one ordinal may take to pass before the plan is blocked, from 1s to 24h. The default is
	// 5m.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Timeout string `json:"timeout,omitempty"`
	// The time between two questions, from 1s to the timeout. The default is 5s. Must be left out for a
	// job.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Interval string `json:"interval,omitempty"`
}

// Request is a one-time request.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf || self.id != oldSelf.id",message="each request must have an id of its own, because a request with a known id has no effect"
// +kubebuilder:validation:XValidation:rule="!self.?removeNames.orValue(false) || !has(self.resume) && !has(self.nodeGone) && !has(self.readopt) && !has(self.maxUnavailable) && !has(self.sourceGone) && !has(self.otherTemplate) && !has(self.otherCopies) && !has(self.ignore) && !has(self.skipGates) && !has(self.skipPlaces) && !has(self.untilOrdinal) && !has(self.pauseAfter)",message="removeNames must be the only field beside id, and the plan must have ended"
// +kubebuilder:validation:XValidation:rule="self.?resume.orValue(false) || self.?removeNames.orValue(false) || has(self.nodeGone) || has(self.readopt) || has(self.maxUnavailable) || has(self.sourceGone) || has(self.otherTemplate) || has(self.otherCopies) || has(self.ignore) || has(self.skipGates) || has(self.skipPlaces) || has(self.untilOrdinal) || has(self.pauseAfter)",message="set a field beside id; resume: true requests only that the plan resumes"
type Request struct {
	// A new value for every request.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	ID string `json:"id"`
	// Requests only that the plan resumes.
	// +optional
	Resume bool `json:"resume,omitempty"`
	// Removes the names that the finalized plan has kept (keepNames).
	// +optional
	RemoveNames bool `json:"removeNames,omitempty"`
	// The user confirms that this node is off, or cannot use the volumes of the ordinals in flight.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	// +optional
	NodeGone string `json:"nodeGone,omitempty"`
	// The user confirms that the sets and volumes that lost the mark of the plan, or were deleted and
	// recreated, are what they were.
	// +optional
	Readopt bool `json:"readopt,omitempty"`
	// How many ordinals may be unavailable during the abort.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MaxUnavailable int32 `json:"maxUnavailable,omitempty"`
	// The user confirms that the source's cluster does not exist any more. The value is the UID of its
	// kube-system namespace.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SourceGone types.UID `json:"sourceGone,omitempty"`
	// Lets the ordinals start with the pod template of the side that receives them, which differs. The
	// value is the word that the reason of the plan has for these two templates.
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{8}$`
	// +optional
	OtherTemplate string `json:"otherTemplate,omitempty"`
	// Lets the ordinals start with these objects of the side that receives them, which differ. Each value
	// is the word that the reason of the plan has for the two states of an object.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=280
	// +kubebuilder:validation:items:Pattern=`^(ConfigMap|Secret|Service|ServiceAccount)/[a-z0-9]([-.a-z0-9]*[a-z0-9])?:[0-9a-f]{8}$`
	// +optional
	OtherCopies []string `json:"otherCopies,omitempty"`
	// Lets the ordinals leave in spite of what these checks find on the side that receives them. They may
	// stay down there.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:items:Pattern=`^[a-z][-a-z]*$`
	// +optional
	Ignore []string `json:"ignore,omitempty"`
	// Continues without the gates of the blocked step, or of the next step that has gates. An abort
	// continues without all gates.
	// +optional
	SkipGates bool `json:"skipGates,omitempty"`
	// Continues without the proof that the place of the waiting ordinal is there (placeholder). An abort
	// continues without the proof of all places.
	// +optional
	SkipPlaces bool `json:"skipPlaces,omitempty"`
	// Stops in a stable split. The destination has this ordinal and all higher ones.
	// +kubebuilder:validation:Minimum=0
	// +optional
	UntilOrdinal *int32 `json:"untilOrdinal,omitempty"`
	// Pauses the plan when this number of further ordinals has arrived.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	PauseAfter int32 `json:"pauseAfter,omitempty"`
}

// Patch is a patch for the set on the destination.
type Patch struct {
	// The text of a strategic merge patch or a JSON patch (RFC 6902), in YAML or JSON.
	// +kubebuilder:validation:MaxLength=65536
	Patch string `json:"patch"`
}

// Topology is a label of nodes that volumes are bound to.
type Topology struct {
	// The key of the label on the source, such as topology.kubernetes.io/zone.
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// The key of the label on the destination. The default is the same key.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	As string `json:"as,omitempty"`
	// Values of the label on the source, and those on the destination. A value without an entry stays as
	// it is.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Values map[string]Name `json:"values,omitempty"`
}

// Exec is a command in a pod.
type Exec struct {
	// The program and its arguments. No shell interprets them. $(POD), $(ORDINAL), $(NAMESPACE) and
	// $(SIDE) are replaced by the values of the ordinal.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=65536
	Command []string `json:"command"`
	// The container that the command runs in. The default is the default container of the pod.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Container string `json:"container,omitempty"`
}

// HTTPGet is a request to a pod.
type HTTPGet struct {
	// The path to request, beginning with a slash.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	Path string `json:"path,omitempty"`
	// Must be left out. The request goes to the pod that the gate asks.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Host string `json:"host,omitempty"`
	// The scheme of the request. The default is HTTP.
	// +kubebuilder:validation:Enum=HTTP;HTTPS
	// +optional
	Scheme string `json:"scheme,omitempty"`
	// The number of a port of the pod, from 1 to 65535, or the name of a port of one of its containers.
	Port intstr.IntOrString `json:"port"`
	// Headers of the request.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	HTTPHeaders []HTTPHeader `json:"httpHeaders,omitempty"`
}

// HTTPHeader is a header of a request.
type HTTPHeader struct {
	// The name of the header.
	// +kubebuilder:validation:MaxLength=65536
	Name string `json:"name"`
	// The value of the header.
	// +kubebuilder:validation:MaxLength=65536
	Value string `json:"value"`
}

// StatefulSetMigrationStatus is what the orchestrator has last reported about the plan.
type StatefulSetMigrationStatus struct {
	// The generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// The state of the plan as `stsmigrate get` shows it. Before the plan begins, the state is Planning
	// or PlanReady.
	// +optional
	State plans.State `json:"state,omitempty"`
	// When the plan came into this state.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// The most important information for the user.
	// +optional
	Message string `json:"message,omitempty"`
	// The direction of the plan.
	// +optional
	Direction plans.Direction `json:"direction,omitempty"`
	// The ConfigMap of the plan.
	// +optional
	Plan string `json:"plan,omitempty"`
	// The value of spec.approvedHash that approves this plan.
	// +optional
	Hash string `json:"hash,omitempty"`
	// What the plan does.
	// +optional
	Summary string `json:"summary,omitempty"`
	// The plan as a file, which rbac, consent and check read with --plan. Only in an object outside of the namespace of the
	// orchestrator, and only if it has at most 512 KiB: in that namespace the ConfigMap of the plan has it.
	// +kubebuilder:validation:MaxLength=524288
	// +optional
	PlanFile string `json:"planFile,omitempty"`
	// The set that moves, as NAMESPACE/NAME in CONTEXT.
	// +optional
	Source string `json:"source,omitempty"`
	// The place that the set moves to, as NAMESPACE/NAME in CONTEXT.
	// +optional
	Destination string `json:"destination,omitempty"`
	// The last change of the state that the receiver of notifications has accepted.
	// +optional
	Notified *Notified `json:"notified,omitempty"`
	// Ready is True when the plan has ended as requested. Reconciling is True while the plan is carried
	// out, and Stalled while the plan needs the user. Planned, Moved, Finalized and Aborted show how far
	// the plan is. Accepted is False when a part of the spec has no effect.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Notified is the last change of the state that the receiver of notifications has accepted.
type Notified struct {
	// The number of that change. Each change of the plan has a greater one.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// What had changed, such as blocked.
	// +optional
	Change string `json:"change,omitempty"`
	// The id of the message.
	// +optional
	ID string `json:"id,omitempty"`
}

// Name is a name of the source or of the destination.
//
// +kubebuilder:validation:MaxLength=253
type Name string

// SecretName is the name of a Secret, as namespace/name.
//
// +kubebuilder:validation:MaxLength=320
type SecretName string

// AttributeValues has the values of the source, and those of the destination.
//
// +kubebuilder:validation:MaxProperties=64
type AttributeValues map[string]AttributeValue

// AttributeValue is a value of the attributes of a CSI volume.
//
// +kubebuilder:validation:MaxLength=1024
type AttributeValue string
