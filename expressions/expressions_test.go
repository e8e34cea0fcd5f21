package expressions

import (
	"strings"
	"testing"
)

func TestAnAnswerIsJudgedByItsContent(t *testing.T) {
	for _, c := range []struct {
		expression string
		answer     Answer
		want       string // a part of the complaint, or ""
	}{
		{`body.state == "running"`, Answer{200, `{"state":"running"}`}, ""},
		{`body.state == "running"`, Answer{200, `{ "state" : "running" }`}, ""},
		{`body.state == "running"`, Answer{200, `{"state":"stopped"}`}, "is false over the 19 bytes"},
		{`body.state == "running"`, Answer{200, `secret`}, "which are not JSON"},
		{`body.state == "running"`, Answer{200, `{"secret":1}`}, "a field is missing"},
		{`int(text.trim()) == 0`, Answer{0, "0\n"}, ""},
		{`int(text.trim()) == 0`, Answer{0, "secret"}, "has no value"},
		{`body.lag < 10 && body.members.all(m, m.healthy)`, Answer{200, `{"lag":9.5,"members":[{"healthy":true},{"healthy":true}]}`}, ""},
		{`body.members.filter(m, m.healthy).size() >= 2`, Answer{200, `{"members":[{"healthy":true},{"healthy":false}]}`}, "is false"},
		{`code in [200, 204] && text.contains("ok")`, Answer{204, "ok"}, ""},
		{`text.matches("^leader: (web-[0-9]+)$")`, Answer{0, "leader: web-1"}, ""},
		{`body.state`, Answer{200, `{"state":"secret"}`}, "neither true nor false"},
		{`has(body.state)`, Answer{200, `{}`}, "is false"},
		{`body == null`, Answer{200, ``}, ""},
	} {
		e, err := Compile(c.expression)
		if err != nil {
			t.Errorf("%s: %v", c.expression, err)
			continue
		}
		got := e.Judge(c.answer)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s over %q: %q, expected %q", c.expression, c.answer.Text, got, c.want)
		}
		if strings.Contains(got, "secret") {
			t.Errorf("%s: the complaint has a part of the answer: %q", c.expression, got)
		}
	}
}

func TestAnExpressionIsCheckedWhenItIsRead(t *testing.T) {
	for text, want := range map[string]string{
		`body.state = "running"`:                "Syntax error",
		`bodie.state == "running"`:              "undeclared reference to 'bodie'",
		`code + 1`:                              "its value is of type int, expected true or false",
		`text`:                                  "type string",
		``:                                      "Syntax error",
		`text == ` + strings.Repeat(`"`, 5<<10): "expected at most 4096",
		`code == "200"`:                         "no matching overload",
	} {
		if _, err := Compile(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, expected %q", text[:min(len(text), 40)], err, want)
		}
	}
}

// Neither an expression nor an answer can keep a process busy.
func TestAnEvaluationIsLimited(t *testing.T) {
	e, err := Compile(`body.all(a, body.all(b, body.all(c, a + b + c >= 0.0)))`)
	if err != nil {
		t.Fatal(err)
	}
	got := e.Judge(Answer{200, "[" + strings.Repeat("1,", 10000) + "1]"})
	if !strings.Contains(got, "takes too long") {
		t.Error(got)
	}
	if e, err = Compile(`text.contains("needle")`); err != nil {
		t.Fatal(err)
	}
	if got := e.Judge(Answer{200, strings.Repeat("x", 2<<20) + "needle"}); got != "" {
		t.Errorf("a search through the longest answer: %s", got)
	}
}
