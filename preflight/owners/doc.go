// Package owners has the checks for whoever else writes to the sets: operators, autoscalers, GitOps tools, Helm and people.
package owners
