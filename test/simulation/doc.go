// Package simulation runs the real engine and the real looks over a world in memory: one or two clusters, the
// controllers that act in them, the disks behind the volumes, and a seeded scheduler that decides which of
// them acts next.
//
// It guarantees that the safety invariants (S1 to S12) are checked after every single change of the world,
// whichever process made it, and S15 at the end. A run is the same again for the same seed. The world models
// the fields that the migration depends on and does not claim to be Kubernetes: what the API server itself
// decides is tested against a real one in test/internal/cluster. The installed admission policies, however, are
// evaluated for every volume.
package simulation
