// Package clients finds the Services by which clients find the pods of a set, beside the governing one: which select
// pods of it now, or may once pods get their labels, which endpoints each has of its own, and which objects point at it.
// It only reads.
package clients
