package field_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// A story is a file of testdata: what exists before, and what is expected. Lines of the file that begin with "#! " say
// what is expected; WHERE is ns (the set moves to another namespace of its cluster) or west (to the cluster west).
//
//	set NAME                     the set in namespace shop that the lines after it are about (web before the first one)
//	to NAMESPACE                 its new namespace where it stays in its cluster (mall)
//	ssa MANAGER                  the set is made by server-side apply with this field manager
//	first COMMAND                run when all pods are ready, before anything is checked
//	bind CONTEXT                 pods that no scheduler looks at are bound by the test
//	flags FLAG...                more flags for check and plan
//	check WHERE LEVEL REGEXP     check finds something of at least this level (WARN, FAIL) that matches
//	check WHERE PASS REGEXP      check ends well, and no FAIL is of a check whose name matches
//	move WHERE                   a move is refused before it writes, or arrives: no ordinal is on neither side
//	during REGEXP :: COMMAND     run as soon as apply prints such a line
//	break COMMAND                run after a move
//	abort WHERE                  afterwards abort leaves no ordinal on neither side
//	templates WHERE              afterwards the pods of both sides have one template, or the plan is blocked
//	ready WHERE N                during the move fewer than N members are Ready in no two samples that follow one another
//	message WHERE REGEXP         apply or status says this
//	finalize WHERE REGEXP        finalize says this
//
// Objects with the annotation example.com/context are in that cluster, all others in east; namespaces are in both.
type story struct {
	name              string
	subject                             // that the lines are about, and in the end the set that moves
	managers          map[string]string // by the name of the set
	bind              string
	flags, firsts     []string
	checks            []expected
	objects           map[string][]*unstructured.Unstructured
	where             string  // of the move, if there is one
	moved             subject // by it
	moves, aborts     bool
	breaks            []string
	during            []interlude
	templates         bool
	ready             int
	messages, endings []expected
}

// subject is a set, and its new namespace.
type subject struct{ set, to string }

// expected is what a command must say.
type expected struct {
	of           subject
	where, level string
	what         *regexp.Regexp
}

// interlude is a command that is run as soon as a line is printed.
type interlude struct {
	at      *regexp.Regexp
	command string
}

func read(path string) (*story, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &story{name: strings.TrimSuffix(filepath.Base(path), ".yaml"), subject: subject{"web", "mall"}, managers: map[string]string{}, objects: map[string][]*unstructured.Unstructured{}}
	for line := range strings.Lines(string(text)) {
		if said, ok := strings.CutPrefix(line, "#! "); ok {
			if err := s.expect(strings.TrimSpace(said)); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", path, line, err)
			}
		}
	}
	if s.where != "" {
		s.subject = s.moved
	}
	if err := s.hold(text); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// expect takes one line of what is expected.
func (s *story) expect(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "set":
		s.subject = subject{rest, "mall"}
	case "to":
		s.to = rest
	case "ssa":
		s.managers[s.set] = rest
	case "first":
		s.firsts = append(s.firsts, rest)
	case "bind":
		s.bind = rest
	case "flags":
		s.flags = strings.Fields(rest)
	case "break":
		s.breaks = append(s.breaks, rest)
	case "during":
		return s.interrupt(rest)
	case "check":
		where, rest, _ := strings.Cut(rest, " ")
		level, what, _ := strings.Cut(rest, " ")
		return s.add(&s.checks, where, level, what)
	case "message", "finalize":
		where, what, _ := strings.Cut(rest, " ")
		list := map[string]*[]expected{"message": &s.messages, "finalize": &s.endings}[word]
		return errors.Join(s.add(list, where, "", what), s.move(where))
	case "move", "abort", "templates":
		*map[string]*bool{"move": &s.moves, "abort": &s.aborts, "templates": &s.templates}[word] = true
		return s.move(rest)
	case "ready":
		where, n, _ := strings.Cut(rest, " ")
		least, err := strconv.Atoi(n)
		s.ready = least
		return errors.Join(err, s.move(where))
	default:
		return errors.New("is not known")
	}
	return nil
}

func (s *story) interrupt(said string) error {
	at, command, ok := strings.Cut(said, " :: ")
	if !ok {
		return errors.New("expected REGEXP :: COMMAND")
	}
	re, err := regexp.Compile(strings.TrimSpace(at))
	s.during = append(s.during, interlude{re, command})
	return err
}

// move says where the one move of the story goes.
func (s *story) move(where string) error {
	if where != "ns" && where != "west" {
		return errors.New("expected ns or west")
	}
	if s.where != "" && (s.where != where || s.moved != s.subject) {
		return errors.New("a story has one move: make a second file")
	}
	s.where, s.moved = where, s.subject
	return nil
}

func (s *story) add(to *[]expected, where, level, what string) error {
	if !slices.Contains([]string{"ns", "west"}, where) || !slices.Contains([]string{"", "PASS", "WARN", "FAIL"}, level) || what == "" {
		return errors.New("expected ns or west, for check PASS, WARN or FAIL, and a regular expression")
	}
	re, err := regexp.Compile("(?i)" + what)
	*to = append(*to, expected{s.subject, where, level, re})
	return err
}

// about returns the sets that are checked, in the order of the file.
func (s *story) about() (out []subject) {
	for _, e := range s.checks {
		if !slices.Contains(out, e.of) {
			out = append(out, e.of)
		}
	}
	return out
}

// hold takes the objects.
func (s *story) hold(text []byte) error {
	docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &o.Object); err != nil {
			return err
		}
		if len(o.Object) == 0 {
			continue
		}
		in := "east"
		if named := o.GetAnnotations()["example.com/context"]; named != "" {
			in = named
		}
		s.objects[in] = append(s.objects[in], o)
	}
}

// stories reads every file.
func stories(t *testing.T) (out []*story) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no files: %v", err)
	}
	for _, f := range files {
		s, err := read(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

func TestEveryFileExpectsSomething(t *testing.T) {
	for _, s := range stories(t) {
		if len(s.checks) == 0 && s.where == "" {
			t.Errorf("%s expects nothing", s.name)
		}
		for _, of := range append(s.about(), s.subject) {
			if !slices.ContainsFunc(s.objects["east"], func(o *unstructured.Unstructured) bool { return o.GetName() == of.set && o.GetNamespace() == "shop" }) {
				t.Errorf("%s: the set shop/%s is not there", s.name, of.set)
			}
		}
	}
	for _, line := range []string{"chek ns WARN x", "check north WARN x", "check ns LOUD x", "check ns WARN", "check ns WARN (", "during x", "move north", "ready ns many"} {
		if new(story).expect(line) == nil {
			t.Errorf("%q is accepted", line)
		}
	}
}
