// Package cluster is the local test bed: real Kubernetes control planes on this machine, without
// containers, images or root.
//
// A cluster is etcd, kube-apiserver, kube-controller-manager and kube-scheduler compiled from their
// Go modules, with KWOK in place of the kubelets: pods are scheduled, become ready and terminate,
// but no container runs. Admission and RBAC are on. Everything listens on loopback and lives in one
// work folder. It is removed when the process that started it ends, however that process ends.
// Clusters started with Detached stay until Remove.
//
// The storage of the bed is a file (Backend) shared by all clusters, with a provisioner and an
// attacher per cluster that behave like the sidecars of a real CSI driver. A volume that a real
// driver would have destroyed is recorded as destroyed, so that tests can check that no data was
// lost.
//
// The package never touches ~/.kube/config, ~/.kwok or a cluster it did not start. The first use
// compiles the binaries (minutes); later uses find them in the cache folder.
package cluster
