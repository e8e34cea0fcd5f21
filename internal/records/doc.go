// Package records stores a plan, its journal and its requests: in ConfigMaps, in the
// StatefulSetMigration beside them, and in the Lease of the process that carries the plan out.
//
// Every write is conditional on the version that was read. The Lease only keeps a second process from
// trying: the epoch in the journal makes a second process harmless.
package records
