// Package records is where a plan, its journal and its requests are kept: ConfigMaps, the StatefulSetMigration beside them, and
// the Lease of the process whose turn it is.
//
// Every write is conditional on what was read. The Lease is politeness: what makes a second process harmless is the epoch
// in the journal.
package records
