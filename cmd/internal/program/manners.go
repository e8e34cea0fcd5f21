package program

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The manners of kubectl: help in groups, global flags behind a command of their own, and suggestions.

// usage is cobra's template without the flags that every command takes.
const usage = `Usage:{{if and .Runnable (not .HasAvailableSubCommands)}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$all := .Commands}}{{if eq (len .Groups) 0}}

Commands:{{range $all}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{else}}{{range $group := .Groups}}

{{.Title}}{{range $all}}{{if and (eq .GroupID $group.ID) (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{end}}{{if and .HasParent .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}

Use "{{.Root.CommandPath}} options" for the flags of every command (-n, --context, --to-context, ...).{{if .HasAvailableSubCommands}}
Use "{{.CommandPath}} [command] --help" for more about a command.{{end}}
`

// Group is a group of commands in the help, in the order in which users need them.
type Group struct {
	Title    string
	Commands []string
}

// Mannered gives a program its groups, its usage text and its suggestions. The last group gets what none names.
func Mannered(root *cobra.Command, groups []Group) {
	root.AddCommand(optionsCommand())
	of := map[string]string{}
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.Title, Title: g.Title})
		for _, name := range g.Commands {
			of[name] = g.Title
		}
	}
	last := groups[len(groups)-1].Title
	for _, c := range root.Commands() {
		if c.GroupID = of[c.Name()]; c.GroupID == "" {
			c.GroupID = last
		}
	}
	root.SetHelpCommandGroupID(last)
	root.SetCompletionCommandGroupID(last)
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		strict(c)
	}
	root.SetUsageTemplate(usage)
	root.SetFlagErrorFunc(flagError)
}

// strict makes a command that only has others below it refuse the name of one that it does not have. Without a name
// it prints its help.
func strict(group *cobra.Command) {
	if group.Runnable() || !group.HasSubCommands() {
		return
	}
	var names []string
	for _, c := range group.Commands() {
		names = append(names, c.Name())
	}
	group.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		hint := DidYouMean(args[0], names)
		if hint == "" {
			hint = "; it has " + strings.Join(names, ", ") + "."
		}
		return fmt.Errorf("unknown command %q for %q%s See `%s --help`", args[0], cmd.CommandPath(), hint, cmd.CommandPath())
	}
	group.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// optionsCommand prints the flags that every command takes.
func optionsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "options", Short: "List the flags that every command takes", Args: NoArgument,
		Run: func(cmd *cobra.Command, _ []string) {
			cmd.Printf("Every command takes these flags:\n\n%s", cmd.Root().PersistentFlags().FlagUsages())
		},
	}
}

// flagError adds to an error of a flag which one may be meant, and where to look.
func flagError(cmd *cobra.Command, err error) error {
	hint := ""
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		if near := nearest(cmd, unknown.GetSpecifiedName()); near != "" {
			hint = "; did you mean --" + near + "?"
		}
	}
	return fmt.Errorf("%w%s See `%s --help`", err, map[bool]string{true: ".", false: hint}[hint == ""], cmd.CommandPath())
}

// Meant returns an error of an unknown command in one sentence: cobra lists the commands that may be meant one to a
// line. Other text stays as it is.
func Meant(text string) string {
	what, near, ok := strings.Cut(text, "\n\nDid you mean this?")
	if !ok {
		return text
	}
	return what + "; did you mean " + strings.Join(strings.Fields(near), " or ") + "?"
}

// nearest returns the flag of a command that is spelled most like a word, or "" if none is.
func nearest(cmd *cobra.Command, word string) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return Closest(word, names)
}

// Closest returns the name that is spelled most like a word, whatever the case, or "" if none is.
func Closest(word string, names []string) string {
	best, least := "", len(word)/3+2
	for _, name := range names {
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// DidYouMean returns what an error of a mistyped word ends with: the question which of the names may be meant, or "".
func DidYouMean(word string, names []string) string {
	if near := Closest(word, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// distance returns how many letters must be changed, added or removed to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for k := range row {
		row[k] = k
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for k := range len(b) {
			next := before
			if a[i] != b[k] {
				next = 1 + min(before, row[k], row[k+1])
			}
			before, row[k+1] = row[k+1], next
		}
	}
	return row[len(b)]
}

// AsPlugin returns a function that names the commands of a program in a text as a user of the plugin types them:
// "kubectl NAME VERB". The messages come from everywhere, and only the program knows how it was started.
func AsPlugin(root *cobra.Command) func(string) string {
	var verbs []string
	for _, c := range root.Commands() {
		verbs = append(verbs, c.Name())
	}
	name := root.Name()
	command := regexp.MustCompile(`(?:(?:-n|--namespace|namespace|kubectl)[ =])?\b` + name + ` (?:` + strings.Join(verbs, "|") + `|completion|help)\b`)
	return func(text string) string {
		return command.ReplaceAllStringFunc(text, func(found string) string {
			if !strings.HasPrefix(found, name+" ") {
				return found
			}
			return "kubectl " + found
		})
	}
}
