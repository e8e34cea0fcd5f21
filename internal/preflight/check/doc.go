// Package check has what every check is made of: the inspection that it reads, in which several checks share
// what is read once, and the findings that it returns.
package check
