// Package manifests holds what must be installed in a cluster before the slice controller can run in it.
package manifests

import _ "embed"

// CRD is the CustomResourceDefinition of StatefulSetSlice, as `make generate` writes it.
//
//go:embed apps.stsmigrate.dev_statefulsetslices.yaml
var CRD []byte
