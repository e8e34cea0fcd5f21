// Package simulation runs the real engine and the real looks over a world in memory: one or two clusters, the
// controllers that act in them, the disks behind the volumes, and a seeded scheduler that decides which of
// them acts next.
//
// It guarantees that the safety invariants (S1 to S12) are checked after every single change of the world,
// whichever process made it, and S15 at the end. A run is the same again for the same seed. The world models
// the fields that the migration depends on and does not claim to be Kubernetes: what the API server itself
// decides is tested against a real one in test/internal/cluster. The installed admission policies, however, are
// evaluated for every volume, and the sets are moved by slicecontroller/core, which test/controller holds against the
// built-in controller.
//
// The other controllers are models. The simulation relies on these behaviours of them:
//
//	binder        binds a claim and a volume that name each other; a claimRef without a UID reserves; a claim whose
//	              volume has another UID is Lost; a claim that names no volume gets any free one, or a new and empty one
//	provisioner   destroys the disk of a Released volume, or of one that is deleted, only where its policy is Delete
//	protection    a claim that is being deleted stays while a pod mounts it
//	collector     deletes what has owners, once none of them exists
//	attacher      a volume is in use on a node BEFORE it is attached, and detached AFTER it is not in use; it is attached
//	              to one node at a time
//	kubelet       starts a pod whose volumes are attached; ends one that is being deleted, unless its node is not Ready
//	scheduler     places a pod whose claims are bound on a Ready node that takes pods
//	budgets       the status follows the spec and the pods late; an eviction is granted on the status, and is
//	              remembered until the pod goes
//
// No test yet plays one script on each of these models and on the real component.
package simulation
