package expressions

import (
	"context"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
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
		{`int(text.split(":")[1].replace("ms", "").trim()) < 10`, Answer{0, "lag: 9 ms\n"}, ""},
		{`text.substring(2) == "nder" && text.substring(1, 3) == "än"`, Answer{0, "wänder"}, ""},
		{`text.substring(9) == ""`, Answer{0, "secret"}, "has no value"},
		{`text.upperAscii() == "LäST" && text.lowerAscii() == "läst"`, Answer{0, "Läst"}, ""},
		{`text.matches("(")`, Answer{0, "secret"}, "has no value"},
		{`matches(text, "^a+$") && text.matches(text)`, Answer{0, "aaa"}, ""},
		{`timestamp(body.at) + duration("1h") > timestamp("2026-01-01T00:00:00Z")`, Answer{0, `{"at":"2026-02-03T04:05:06Z"}`}, ""},
		{`size(body.a + body.b) == 3`, Answer{0, `{"a":[1],"b":[2,3]}`}, ""},
	} {
		e, err := Compile(c.expression)
		if err != nil {
			t.Errorf("%s: %v", c.expression, err)
			continue
		}
		got := e.Judge(t.Context(), c.answer)
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
		`[text].exists(a, [a, a] == [a])`:       "a list may have only constants in it",
		`body.map(a, a.lag).all(b, b < 1)`:      "undeclared reference to 'map'",
		`{"a": body} == body`:                   "may not make a map",
		`google.protobuf.ListValue{values: body} == body`: "may not make a map or a message",
		`text.lastIndexOf("b") > 0`:                       "undeclared reference to 'lastIndexOf'",
		strings.Repeat("body + ", 17) + `body == body`:    "17 additions, expected at most 16",
	} {
		if _, err := Compile(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, expected %q", text[:min(len(text), 40)], err, want)
		}
	}
}

// Neither an expression nor an answer can keep a process busy, or fill it up.
func TestAnEvaluationIsLimited(t *testing.T) {
	long := strings.Repeat("x", 2<<20)
	numbers := "[" + strings.Repeat("1,", 500_000) + "1]"
	nested := `{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}"
	slow := `body.all(a, body.exists_one(b, a == b))`
	for expression, answer := range map[string]string{
		`body.all(a, body.all(b, body.all(c, a + b + c >= 0.0)))`: numbers,
		`text.replace("", text) != ""`:                            long,
		`text.replace("x", "` + strings.Repeat("y", 100) + `").replace("y", "` + strings.Repeat("z", 100) + `") == ""`: long[:1000],
		`text.matches("(x?){900}y")`: long[:400<<10],
		`text.matches(text.substring(0, 500)) || text.matches("` + strings.Repeat("x?", 400) + `y")`: long,
		`body.all(a, text.size() > 0)`:            `[` + strings.Repeat(`"x",`, 100_000) + `""]`,
		`body.all(a, text.trim() == "")`:          `[` + strings.Repeat(`"x",`, 100_000) + `""]`,
		`body.all(a, text.split(",").size() > 0)`: numbers,
		`body.all(a, body == body)`:               numbers,
		`body.all(a, 2.0 in body)`:                numbers,
		`2.0 in (` + strings.Repeat("body + ", 15) + `body) || 3.0 in (` + strings.Repeat("body + ", 1) + `body)`: numbers,
		slow: numbers,
		`body.filter(a, body.filter(b, a == b) == body) == body`:                                     numbers,
		`[` + strings.Repeat("1,", 1500) + `1].all(a, body.a == body.a) && body.a.all(a, a == body)`: nested,
	} {
		what := expression[:min(len(expression), 80)]
		e, err := Compile(expression)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ctx, stop := context.WithTimeout(t.Context(), maxTime/5)
		if expression == slow {
			ctx = t.Context()
		}
		began := cpu()
		got := e.Judge(ctx, Answer{200, answer})
		took := cpu() - began
		stop()
		runtime.ReadMemStats(&after)
		allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
		if took > 2*maxTime || allocated > 512 || strings.Contains(got, "no value") {
			t.Errorf("%s: it took %s and %d MiB: %s", what, took, allocated, got)
		}
	}
}

// cpu returns the time that this process has used.
func cpu() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
