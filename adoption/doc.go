// Package adoption makes a StatefulSet a StatefulSetSlice of the same name and pods, or the other way round, without a
// restart. Each step is one conditional write, and what was there before is kept until the pods have their new owner.
package adoption
