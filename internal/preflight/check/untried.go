package check

import "regexp"

// unwritable is in the words by which an authorizer refuses a write. Those of admission mean another thing: they are about
// the object, and not about the user.
var unwritable = regexp.MustCompile(` cannot (create|update|patch|delete) resource `)

// Untried makes warnings of the dry runs that were refused because the user may not write, while a plan is made: who only
// looks can plan. The user who carries the plan out needs the rights, and every check is asked again then.
func (i Inspection) Untried(found []Finding) []Finding {
	for k, f := range found {
		if i.Draft && f.Passing && unwritable.MatchString(f.Saw) {
			found[k].Level, found[k].Want = Warn, f.Want+" (it could not be tried)"
			found[k].Remedy = "nothing to do if another user carries the plan out: apply tries it with the rights of that user"
			if i.Account != "" {
				found[k].Remedy = "nothing to do: the orchestrator tries it with its own rights before the first write"
			}
		}
	}
	return found
}
