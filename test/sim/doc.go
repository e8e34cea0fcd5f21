// Package sim runs the real engine and the real looks over a world in memory:
// one or two clusters, the controllers that act in them, the disks behind the
// volumes, and a seeded "everybody else" that decides who acts next.
//
// It promises that the safety invariants (S1 to S12) are checked after every
// single change of the world, whoever made it, and S15 at the end, and that a
// run is the same again for the same seed. It models the fields that the
// migration depends on and never claims to be Kubernetes: what the API server
// itself decides is tested against a real one in test/cluster. The admission
// policies that are installed are asked, though, about every volume.
package sim
