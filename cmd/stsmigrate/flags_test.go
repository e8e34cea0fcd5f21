package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// every calls do with each command of the program.
func every(t *testing.T, do func(*cobra.Command)) {
	t.Helper()
	todo := []*cobra.Command{new(app).command("stsmigrate")}
	for len(todo) > 0 {
		do(todo[0])
		todo = append(todo[1:], todo[0].Commands()...)
	}
}

// Backquotes in a flag's usage mark the name of its value, which must be one word.
func TestTheHelpOfAFlagNamesItsValueWithOneWord(t *testing.T) {
	every(t, func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); strings.ContainsAny(name, " -") {
				t.Errorf("%s: --%s %s", c.CommandPath(), f.Name, name)
			}
		})
	})
}

// Bad input gets one sentence with the command that helps, whichever command it is.
func TestAMissingArgumentIsNamed(t *testing.T) {
	every(t, func(c *cobra.Command) {
		if c.Args == nil || c.ValidateArgs(nil) == nil {
			return
		}
		_, what, _ := strings.Cut(c.Use, " ")
		err := c.ValidateArgs(nil)
		if c.ValidateArgs([]string{"a"}) != nil || !strings.Contains(err.Error(), c.CommandPath()+" takes one "+what+", and got none") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.CommandPath(), err)
		}
	})
}
