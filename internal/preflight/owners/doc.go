// Package owners has the checks for other writers of the sets: operators, autoscalers, GitOps tools, Helm and
// users.
package owners
