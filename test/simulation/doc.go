// Package simulation runs the real engine and the real looks over a world in memory: one or two clusters, the
// controllers that act in them, the disks behind the volumes, and a seeded scheduler that decides which of
// them acts next.
//
// It guarantees that the safety invariants (S1 to S12) are checked after every single change of the world,
// whichever process made it, and S15 at the end. A run is the same again for the same seed. The world models
// the fields that the migration depends on and does not claim to be Kubernetes: what the API server itself
// decides is tested against a real one in test/internal/cluster. The installed admission policies, however, are
// evaluated for every volume and every set, and the sets are moved by slicecontroller/core, which test/controller holds
// against the built-in controller.
//
// The other controllers are models. test/models plays the same scripts on them and on a real control plane, and compares
// what there is after every step. The simulation relies on these behaviours of them:
//
//	binder        (TestBinder) binds a claim and a volume that name each other; a claimRef without a UID reserves; a
//	              claim whose volume has another UID, or is gone, is Lost, and Bound again once the volume is back with
//	              its UID; a volume whose claim is gone is Released, also where another claim of that name exists; a
//	              claim that names no volume gets a free one of its class
//	provisioner   makes a new and empty volume for a claim of its class; destroys the disk of a Released volume, or of
//	              one that is deleted, only where its policy is Delete
//	protection    (TestProtection) a claim that is being deleted stays while a pod that has a node names it; a volume
//	              stays while it is bound
//	collector     (TestCollector) deletes what has owners, once none of them exists, and takes those that are gone off
//	              the rest; in the foreground, what owns goes last; orphans stay
//	attacher      (TestAttachments) a volume is attached while a pod that has not ended mounts it on its node, and is
//	              detached when the pod has ended or gone, also by force, or from a node that is out of service
//	kubelet       starts a pod whose volumes are attached; ends one that is being deleted, unless its node is not Ready;
//	              a volume is in use on a node BEFORE it is attached, and detached AFTER it is not in use
//	scheduler     (TestProtection, TestAttachments) places a pod whose claims are bound, and not being deleted, on a
//	              Ready node that takes pods
//	budgets       (TestBudgets) the status follows the spec and the pods late
//	evictions     (TestEvictions) are granted on the status, and remembered until the pod goes; a pod that does not serve
//	              goes if enough others do, or its budget always lets it
//	admission     (TestAdmission) policies are asked before the quota; a dry run is asked the same, and leaves no trace
//
// There is no model of endpoints: the slices that a plan writes are held against those of the control plane
// (TestEndpoints). Not held are what only kubelets do (KWOK stands in for them), the provisioner and the attacher of the
// driver (the bed has its own), and that an attachment to a dead node goes by itself after six minutes: in the model it
// may go at once.
package simulation
