package repo

import (
	"go/scanner"
	"go/token"
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
	instead := map[*regexp.Regexp]string{}
	for word, use := range houseWords() {
		instead[regexp.MustCompile(`(?i)\b`+word+`\b`)] = use
	}
	product(t, func(path string, text []byte) {
		for where, words := range prose(path, text) {
			for word, use := range instead {
				if found := word.FindString(words); found != "" {
					t.Errorf("%s: %q: say %s", where, found, use)
				}
			}
		}
	})
}

// prose returns the comments and strings of a file, by their positions.
func prose(path string, text []byte) map[token.Position]string {
	out, files := map[token.Position]string{}, token.NewFileSet()
	var s scanner.Scanner
	s.Init(files.AddFile(path, -1, len(text)), text, nil, scanner.ScanComments)
	for pos, tok, lit := s.Scan(); tok != token.EOF; pos, tok, lit = s.Scan() {
		if tok == token.STRING || tok == token.COMMENT && !strings.HasPrefix(lit, "//nolint") {
			out[files.Position(pos)] = lit
		}
	}
	return out
}
