// Package schemas has the JSON Schemas of the documents that stsmigrate reads and writes. They are generated from the
// Go types by the test of this package.
package schemas

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.schema.json
var files embed.FS

// Kinds returns the kinds of document that have a schema.
func Kinds() []string { return []string{"Migration", "Plan", "Journal", "Report", "PlanStatus"} }

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
