// Package adoption converts a StatefulSet into a StatefulSetSlice of the same name and pods, or the reverse,
// without a restart. Each step is one conditional write, and the former set is kept in a ConfigMap until the
// pods have their new owner.
package adoption
