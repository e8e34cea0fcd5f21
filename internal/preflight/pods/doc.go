// Package pods has the checks of the source's pods, and of what pods need on the destination: names, nodes, quota,
// images, classes, and the objects that their template names.
package pods
