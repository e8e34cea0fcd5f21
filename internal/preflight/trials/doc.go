// Package trials has the checks that send the writes of a plan as dry runs before the first ordinal leaves. Admission answers a
// dry run as it answers the write. What is asked is what the parts of a move say that they write (package part): a part that is
// added is tried too.
package trials
