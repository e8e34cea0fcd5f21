package program

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Choice adds a flag for one of some words. Another word is refused before the command begins.
func Choice(flags *pflag.FlagSet, to *string, name, usage string, words ...string) {
	flags.Var(choice{to, words}, name, usage)
}

type choice struct {
	*string
	words []string
}

// Set implements pflag.Value.
func (c choice) Set(text string) error {
	if !slices.Contains(c.words, text) {
		return fmt.Errorf("expected %s%s", strings.Join(c.words, " or "), DidYouMean(text, c.words))
	}
	*c.string = text
	return nil
}

// String implements pflag.Value.
func (c choice) String() string {
	if c.string == nil {
		return ""
	}
	return *c.string
}

// Type implements pflag.Value.
func (choice) Type() string { return "string" }
