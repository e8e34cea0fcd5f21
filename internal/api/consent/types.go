// Package consent contains the kind VolumeConsent, with which a cluster agrees to the volumes that orchestrators create
// in it. It is the parameter of the admission policy stsmigrate-new-volumes. That parameter has a kind of its own because
// API servers do not read a built-in kind again for a policy whose binding was away for a moment
// (kubernetes/kubernetes#133827): what is withdrawn then would stay in force.
//
// +groupName=stsmigrate.dev
// +versionName=v1alpha1
package consent

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// VolumeConsent contains the volumes that orchestrators may create in this cluster. A cluster has one, with the name
// cluster. Only its administrators write it. `stsmigrate consent --cluster` prints it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=volumeconsents,scope=Cluster
// +kubebuilder:printcolumn:name="Volumes",type=string,JSONPath=`.spec.volumes[*].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'cluster'",message="a cluster has one consent, with the name cluster: an object of another name has no effect"
type VolumeConsent struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What this cluster agrees to.
	// +optional
	Spec VolumeConsentSpec `json:"spec,omitzero"`
}

// VolumeConsentSpec is what a cluster agrees to.
type VolumeConsentSpec struct {
	// The volumes that orchestrators may create. They create no others.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10000
	// +optional
	Volumes []Volume `json:"volumes,omitempty"`
}

// Volume is a PersistentVolume as a plan creates it.
type Volume struct {
	// The name of the PersistentVolume.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// The plan that may create it, by its ID (stsmigrate status).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Plan string `json:"plan"`
	// The annotations that name the Secrets with which the helpers of the driver delete and modify the volume.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// The spec of the PersistentVolume, field by field: the disk, the claim, the mount options, the Secrets with
	// their roles, the nodes. The volume must have exactly these fields, beside its capacity, its reclaim policy
	// and its VolumeAttributesClass.
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec runtime.RawExtension `json:"spec"`
}
