// Package sets has the steps that change the two sets of a plan: Freeze and Hold before the first wave, Shrink and Grow in each,
// Retire and Thaw after the last, and the copies of what the pods need.
//
// Each step looks at the world and answers Before, During, After or Foreign; with Before it hands out one conditional write.
// Start and replicas of a set are changed in one write.
package sets
