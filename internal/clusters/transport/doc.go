// Package transport limits what the answers of an API server can do to the program that reads them: no redirects, no
// endless bodies, no pauses of an hour, and no quotes of texts that no API server writes.
package transport
