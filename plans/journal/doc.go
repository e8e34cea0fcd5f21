// Package journal is the record of a plan: the steps that have begun and those that are done, the old values that an
// abort needs, and what the user has asked for and confirmed. A process that takes a plan over reads it, and nothing
// else, to know where to continue. Its size does not depend on the number of ordinals.
package journal
