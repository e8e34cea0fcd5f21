package program

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// OneArgument requires exactly one argument: the one that the command's Use names.
func OneArgument(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	_, what, _ := strings.Cut(cmd.Use, " ")
	got := "none"
	if len(args) > 1 {
		got = strings.Join(args, " ")
	}
	hint := ""
	if strings.Contains(what, "PLAN") {
		hint = "; `stsmigrate get -A` lists the plans"
	}
	return fmt.Errorf("%s takes one %s, and got %s: %s --help shows how%s", cmd.CommandPath(), what, got, cmd.CommandPath(), hint)
}

// NoArgument allows no argument.
func NoArgument(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.Name() == "get":
		return fmt.Errorf("%s lists plans, and takes none of their names: `stsmigrate status %s` shows one plan", cmd.CommandPath(), args[0])
	}
	return fmt.Errorf("%s takes no argument, and got %s: %[1]s --help shows how", cmd.CommandPath(), strings.Join(args, " "))
}

// OptionalArgument allows one argument: the one that the command's Use names.
func OptionalArgument(cmd *cobra.Command, args []string) error {
	if len(args) <= 1 {
		return nil
	}
	what := strings.Trim(strings.Fields(cmd.Use)[1], "[]")
	return fmt.Errorf("%s takes at most one %s, and got %s: %[1]s --help shows how", cmd.CommandPath(), what, strings.Join(args, " "))
}

// TwoArguments requires exactly the two arguments that the command's Use names.
func TwoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 2 {
		return nil
	}
	_, what, _ := strings.Cut(cmd.Use, " ")
	return fmt.Errorf("%s takes %s, and got %s: %[1]s --help shows how", cmd.CommandPath(), what, cmp.Or(strings.Join(args, " "), "none"))
}
