package stsmigrate_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// houseWords are words that this project does not use, each with the word for it (docs/concepts.md).
func houseWords() map[string]string {
	return map[string]string{
		`(somebody|nobody|everybody|whoever)`:                     "another writer, no controller, the user",
		`(is|are|was|were|been|being|a|plan) held`:                "blocked (a plan), protected (a volume)",
		`walk(s|ed|ing)? back`:                                    "abort, roll back",
		`(goes|go|went|going|gone) on (with|by|as)`:               "continue, resume",
		`mend(s|ed|ing)?`:                                         "fix",
		`turn(s|ed)? round`:                                       "reverse",
		`made (again|anew)`:                                       "recreated",
		`let(s|ting)? go of`:                                      "release, scale down",
		`(says|tells|asks|answers) whether`:                       "reports whether",
		`(glance|herald|shelf|becalmed|errand|carriage|rumour)s?`: "readCache, EventWriter, index, idle, action, Runner, queue",
	}
}

// TestOneConceptHasOneWord reads every comment and every string of the product.
func TestOneConceptHasOneWord(t *testing.T) {
	t.Parallel()
	var all []string
	instead := map[string]*regexp.Regexp{}
	for word, use := range houseWords() {
		all = append(all, word)
		instead[use] = regexp.MustCompile(`(?i)\b` + word + `\b`)
	}
	forbidden := regexp.MustCompile(`(?i)\b(` + strings.Join(all, "|") + `)\b`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "test" || path == "bin" || path == "dist" || path != "." && strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "zz_generated"):
			return nil
		}
		text, err := os.ReadFile(path) //nolint:gosec // a file of this repository
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file := files.AddFile(path, -1, len(text))
		var s scanner.Scanner
		s.Init(file, text, nil, scanner.ScanComments)
		for pos, tok, lit := s.Scan(); tok != token.EOF; pos, tok, lit = s.Scan() {
			if tok != token.COMMENT && tok != token.STRING || strings.HasPrefix(lit, "//nolint") {
				continue
			}
			if found := forbidden.FindString(lit); found != "" {
				for use, word := range instead {
					if word.MatchString(found) {
						t.Errorf("%s: %q: say %s", files.Position(pos), found, use)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
