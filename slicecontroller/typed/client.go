// Package typed provides a client for StatefulSetSlices, with the methods that client-go has for
// StatefulSets. Its apply configurations are in slicecontroller/v1alpha1/applyconfiguration.
package typed

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
	applyv1alpha1 "github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1/applyconfiguration/slicecontroller/v1alpha1"
)

// Client is a client for one cluster.
type Client struct {
	rest   rest.Interface
	params runtime.ParameterCodec
}

// StatefulSetSlices reads and writes the slices of a namespace.
type StatefulSetSlices = *gentype.ClientWithListAndApply[*v1alpha1.StatefulSetSlice, *v1alpha1.StatefulSetSliceList, *applyv1alpha1.StatefulSetSliceApplyConfiguration]

// New returns a client for the cluster of config. It does not modify config.
func New(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	version := v1alpha1.GroupVersion()
	config.GroupVersion, config.APIPath = &version, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, "" // a custom resource has no other content type
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Client{c, runtime.NewParameterCodec(scheme)}, nil
}

// StatefulSetSlices returns the client for the slices of a namespace, or of all
// namespaces if namespace is "".
func (c *Client) StatefulSetSlices(namespace string) StatefulSetSlices {
	return gentype.NewClientWithListAndApply[*v1alpha1.StatefulSetSlice, *v1alpha1.StatefulSetSliceList, *applyv1alpha1.StatefulSetSliceApplyConfiguration](
		"statefulsetslices", c.rest, c.params, namespace,
		func() *v1alpha1.StatefulSetSlice { return &v1alpha1.StatefulSetSlice{} }, func() *v1alpha1.StatefulSetSliceList { return &v1alpha1.StatefulSetSliceList{} },
	)
}
