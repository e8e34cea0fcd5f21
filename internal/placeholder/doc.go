// Package placeholder makes the pod that takes the place of an ordinal before the ordinal leaves, and reads from it what
// it proves: that the scheduler, the quotas and the admission chain of the other side let this very pod in, that there is a
// node for it, that its images are there, and that its ConfigMaps and Secrets can be mounted.
//
// A placeholder does nothing. It has the containers of the ordinal with their images and resources, and none of the claims
// that move. It has none of the labels of the set: no Service, budget or controller takes it for a member.
package placeholder
