// Package check is what every check is made of: the inspection that it looks at, in which several checks read once what they
// share, and the findings that it gives.
package check
