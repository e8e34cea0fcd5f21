package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What a page says is missing is mended, or said as a limit, when it is there: such a sentence outlives it unseen.
func TestNoPageSaysThatSomethingIsToCome(t *testing.T) {
	stale := regexp.MustCompile(`(?i)not (there|run|done|written|tested|supported) yet|coming soon|work in progress|to be written|\bTODO\b|\bTBD\b|\bFIXME\b`)
	for path, text := range pages(t) {
		for _, words := range stale.FindAllString(text, -1) {
			t.Errorf("%s says %q", path, words)
		}
	}
}

// tests are the sources of all tests of the repository by their names, each with the comment above it
// and the variables of its file that it uses.
func tests(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		return sources(path, out)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// variables are those that the functions of a file share.
func variables(f *ast.File) (out []*ast.ValueSpec) {
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, s := range g.Specs {
				if v, ok := s.(*ast.ValueSpec); ok {
					out = append(out, v)
				}
			}
		}
	}
	return out
}

// sources adds the tests of a file.
func sources(path string, out map[string]string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, raw, parser.ParseComments)
	if err != nil {
		return err
	}
	source := func(from, to token.Pos) string {
		return string(raw[files.Position(from).Offset:files.Position(to).Offset])
	}
	for _, d := range f.Decls {
		test, ok := d.(*ast.FuncDecl)
		if !ok || test.Recv != nil || !regexp.MustCompile(`^(Test|Fuzz)\w+`).MatchString(test.Name.Name) {
			continue
		}
		out[test.Name.Name] += test.Doc.Text() + source(test.Pos(), test.End())
		for _, v := range variables(f) {
			if regexp.MustCompile(`\b` + v.Names[0].Name + `\b`).MatchString(source(test.Pos(), test.End())) {
				out[test.Name.Name] += source(v.Pos(), v.End())
			}
		}
	}
	return nil
}

// rows are the rows of the tables of a page, cell by cell.
func rows(t *testing.T, page string) (out [][]string) {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if cells := strings.Split(strings.Trim(line, "| \n"), " | "); len(cells) > 2 {
			out = append(out, cells)
		}
	}
	return out
}

// named are the tests that a row names: its last cell says what shows it.
func named(row []string) []string {
	return regexp.MustCompile(`\b(?:Test|Fuzz)\w+`).FindAllString(row[len(row)-1], -1)
}

// A table that names tests which are gone shows nothing.
func TestTheTestsThatPagesNameExist(t *testing.T) {
	there := tests(t)
	for _, page := range []string{"docs/requirements.md", "SECURITY.md"} {
		var all []string
		for _, row := range rows(t, page) {
			all = append(all, named(row)...)
		}
		if len(all) == 0 {
			t.Errorf("%s names no tests", page)
		}
		for _, name := range all {
			if there[name] == "" {
				t.Errorf("%s names %s, which is no test", page, name)
			}
		}
	}
}

// A row is easily mapped to a test that is next to what it asks for: the test has to say itself which
// row it shows.
func TestTheTestsOfARequirementNameIt(t *testing.T) {
	there, shown := tests(t), 0
	for _, row := range rows(t, "docs/requirements.md") {
		id, names := row[0], named(row)
		says := func(name string) bool { return regexp.MustCompile(`\b` + id + `\b`).MatchString(there[name]) }
		switch {
		case len(names) == 0:
		case slices.ContainsFunc(names, says):
			shown++
		default:
			t.Errorf("%s (%s): no case or comment of %s names it", id, row[1], strings.Join(names, ", "))
		}
	}
	t.Logf("%d rows are named by what shows them", shown)
}
