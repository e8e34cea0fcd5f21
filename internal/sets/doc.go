// Package sets implements the steps that change the two sets of a plan: Freeze before the first
// wave, Shrink and Grow in each wave, Retire and Thaw after the last, and the copies of the dependencies.
//
// Each step looks at the clusters and returns Before, During, After or Conflict; with Before it returns one
// conditional write. Start and replicas of a set are changed in one write.
package sets
