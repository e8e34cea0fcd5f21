// Package expansion says what the kubelet makes of a pod in a namespace: the variables of its containers, and the texts
// into which they are expanded. It is pure.
package expansion
