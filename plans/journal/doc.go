// Package journal is the record of a plan.
package journal
