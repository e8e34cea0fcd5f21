// Package schemas has the JSON Schemas of the documents that stsmigrate reads and writes. The test of this package
// generates them from the Go types. Those of the messages, Event and Notification, are written by hand, and the test
// compares their fields with the types.
package schemas

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.schema.json
var files embed.FS

// Kinds returns the kinds of document that have a schema.
func Kinds() []string {
	return []string{"Migration", "Plan", "Journal", "Report", "PlanStatus", "Event", "Notification"}
}

// Of returns the schema of a kind, in whatever case it is written.
func Of(kind string) ([]byte, error) {
	for _, k := range Kinds() {
		if strings.EqualFold(k, kind) {
			return files.ReadFile(File(k))
		}
	}
	return nil, fmt.Errorf("there is no schema of kind %q: expected one of %s", kind, strings.Join(Kinds(), ", "))
}

// File returns the name of the file that has the schema of a kind.
func File(kind string) string { return strings.ToLower(kind) + ".schema.json" }
