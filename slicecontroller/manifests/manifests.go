// Package manifests has what a cluster needs to know before the slice controller can run
// in it.
package manifests

import _ "embed"

// CRD is the kind StatefulSetSlice, as `make generate` writes it.
//
//go:embed apps.stsmigrate.dev_statefulsetslices.yaml
var CRD []byte
