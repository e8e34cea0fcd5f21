package program

import (
	"regexp"
	"strings"
)

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./~-]+$`)

// Quoted returns a word as a shell reads it, for a command that the user may copy.
func Quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Given returns flags as a command has them, each with a space before it. Those without a value are left out.
func Given(flagsAndValues ...string) string {
	var out strings.Builder
	for k := 0; k+1 < len(flagsAndValues); k += 2 {
		if flagsAndValues[k+1] != "" {
			out.WriteString(" " + flagsAndValues[k] + " " + Quoted(flagsAndValues[k+1]))
		}
	}
	return out.String()
}
