package bundle

import (
	"regexp"
	"strings"
)

// pattern finds credentials in a text. The groups "before" and "after" of a match stay, and all else is left out.
type pattern struct {
	*regexp.Regexp
	// harmless, if it is set, reports that a match is no credential.
	harmless func(match string) bool
}

// mark stands for what is left out while patterns are still looked for: it is one character, so that a match of it
// changes nothing.
const mark = "\x00"

// Scrubbed removes what looks like a credential from a text, such as the message of an Event. Names of fields do not
// help there.
func (c *Redactor) Scrubbed(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, mark, ""), hidden, mark)
	for _, p := range c.credentials {
		text = p.scrubbed(text)
	}
	return strings.ReplaceAll(text, mark, hidden)
}

func (p pattern) scrubbed(text string) string {
	before, after := p.SubexpIndex("before"), p.SubexpIndex("after")
	return p.ReplaceAllStringFunc(text, func(match string) string {
		if p.harmless != nil && p.harmless(match) {
			return match
		}
		groups, out := p.FindStringSubmatch(match), mark
		if before > 0 && strings.Trim(match[len(groups[before]):], mark+` \"'()[]{},`) == "" {
			return match // nothing is left to hide
		}
		if before > 0 {
			out = groups[before] + out
		}
		if after > 0 {
			out += groups[after]
		}
		return out
	})
}

// Parts of the patterns.
const (
	// quoted is a text in quotes, up to the end of a message that is cut, or one whose quotes are escaped.
	quoted = `\\+"(?:[^"\\]|\\\\\\"|\\[^"])*(?:\\*"|$)|(?:"(?:[^"\\]|\\.)*(?:"|\\?$)|'(?:[^'\\]|\\.)*(?:'|\\?$))+`
	// value is what follows the name of a credential.
	value = `(?:` + quoted + `|\[[^\]\n]*\]?|[^\s"'&;]+)`
	// secretWord is a part of the names of credentials.
	secretWord = `(?:passw(?:or)?d|passphrase|passcode|pwd|secret|token|credential|account[_-]?key|api[_-]?key|access[_-]?key|` +
		`private[_-]?key|(?:en|de)cryption[_-]?key|sign(?:ing)?[_-]?key|master[_-]?key|shared[_-]?key|(?:require|user|db|root|admin)[_-]?pass)`
	// wordEnd is a whole name, or the end of one behind a separator: the same letters are in ordinary words too.
	wordEnd = `(?:\b|_)(?:sig|signature|pass|pw|psk|auth|masterauth|jwt|session[_-]?id)`
	// secretName is the name of a credential.
	secretName = `(?:[a-z0-9_.-]*` + secretWord + `[a-z0-9_.-]*|[a-z0-9_.-]*` + wordEnd + `)`
	// gate begins a reason about a gate, and tries says in its end how often it was asked.
	gate  = `\bgate [a-z0-9-]+(?: \([A-Za-z]+\))? of [^\n]*?`
	tries = `(?:; asked every| \((?:asked|waited)) [0-9][^\n]*`
	// scheme is the word before a credential in a header.
	scheme = `(?:(?:bearer|basic|token|digest|negotiate|apikey)\s+)?`
)

// patterns match credentials in prose, in commands and in URLs.
func patterns() []pattern {
	must := regexp.MustCompile
	return []pattern{
		{Regexp: must(`(?s)(?P<before>-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)},
		{Regexp: must(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]+`)},
		{Regexp: must(`\b(?:gh[a-z]_|github_pat_|glpat-|xox[a-z]-|hvs\.|AKIA|ASIA|sk-|npm_|AIza)[A-Za-z0-9_-]{12,}`)},
		// What a pod says to a gate, and what the gate expects of it.
		{Regexp: must(`(?P<before>` + gate + `(?:(?:exit code -?[0-9]+|HTTP status [0-9]+|no answer in [0-9a-z.]+)[:,;]|; expected) )(?:[^\n]*(?P<after>` + tries + `)|[^\n]+)`)},
		// Headers, up to the end of the line, or of the quotes around the value.
		{Regexp: must(`(?i)(?P<before>\b(?:(?:proxy-)?authorization|(?:set-)?cookie)(?:\\*["'])?\s*[=:]+\s*)(?:` + quoted + `|[^\s"'\\][^\r\n]*)`)},
		// The user and the password of a URL. The password may have a slash in it.
		{Regexp: must(`(?P<before>://)(?:[^\s/"<>]*|[^\s/:"<>]*:[^\s"<>]*)(?P<after>@(?:sha[0-9]+:)?)`), harmless: digest},
		{Regexp: must(`(?i)(?P<before>` + `/?` + secretName + `(?:\\*["'` + "`" + `])?\s*(?:=>|[=:>])=?\s*(?:[|>][+-]?[ \t]*\n\s*)?` + scheme + `)` + value), harmless: named},
		{Regexp: must(`(?i)(?P<before>(?:^|[\s"'\[(,=])--?` + secretName + `(?:\\*["'])?(?:\s*,\s*|\s+))` + value), harmless: named},
		{Regexp: must(`(?i)(?P<before>\b(?:requirepass|masterauth|masteruser|identified by)\s+)` + value)},
		{Regexp: must(`(?i)(?P<before>\bredis-cli\b[^\n|;]*?\s(?:-a|--user)\s+)` + value)},
		{Regexp: must(`(?i)(?P<before>\b(?:mysql|mariadb)[a-z-]*\b[^\n|;]*?\s-p)` + value)},
		{Regexp: must(`(?i)(?P<before>\bsshpass\s+-p\s*)` + value)},
		{Regexp: must(`(?i)(?P<before>\b(?:curl|wget)\b[^\n|;]*?\s(?:-u\s*|--user[\s=]+))` + value)},
		{Regexp: must(`(?i)(?P<before>[?&](?:[a-z0-9_.-]*[_.-])?(?:key|code|hmac|sid)=)[^\s"'&;]+`)},
		{Regexp: must(`(?i)(?P<before>\bbearer\s+)[a-z0-9._~+/=-]{8,}`)},
	}
}

// digest reports that a match is the name of an image and the beginning of its digest.
func digest(match string) bool {
	return strings.HasSuffix(match, ":") && strings.Count(match, "@") == 1
}

var (
	// reference matches fields that say where a credential is.
	reference = regexp.MustCompile(`(?i)^[^=:>\s"']*(?:name|names|ref|refs|namespace|file|path|dir|seconds|count)(?:\\*["'` + "`" + `])?[=:>\s,]`)
	// tagged matches the name of an image behind that of its registry, and its tag.
	tagged = regexp.MustCompile(`(?i)^/[a-z0-9_.-]+:[a-z0-9_][a-z0-9_.-]*$`)
	// bare matches a name that is nothing but a word for a credential.
	bare = regexp.MustCompile(`(?i)^/(?:passw(?:or)?d|passphrase|pwd|secret|token):`)
)

// named reports that a match is a reference to a credential, or the name of an image.
func named(match string) bool {
	return reference.MatchString(strings.TrimLeft(match, " \t\n\"'[(,=")) || tagged.MatchString(match) && !bare.MatchString(match)
}
