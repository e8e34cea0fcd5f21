// Package e2e moves StatefulSets between real clusters: kind nodes with real kubelets, real
// containers, real data and a real DNS. It is a module of its own, so that kind never enters the
// product's go.mod. Its tests have the build tag e2e and need Docker; see the targets e2e and smoke
// of the Makefile.
//
//	bed/      the two clusters, for the tests and for interactive use (make kind)
//	images/   the programs that run in them, each the only file of its image
package e2e
