package field_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
	"github.com/stsmigrate/stsmigrate/test/internal/today"
)

const (
	pace     = 300 * time.Millisecond // how long a pod takes to start and to stop, and a volume to detach
	settling = 30 * time.Second       // how long an API server may take until a policy is in force
	stuck    = 90 * time.Second       // how long a command that cannot go on is waited for
	tooLong  = 4 * time.Minute        // after which a command counts as hanging
)

// The exit codes of the program that are looked at.
const (
	done    = 0
	blocked = 3
	held    = 4
)

func TestSetsAsPeopleHaveThem(t *testing.T) {
	for n, s := range stories(t) {
		t.Run(s.name, func(t *testing.T) {
			isPlayed(t, n)
			t.Parallel()
			begin(t, s).play()
		})
	}
}

// isPlayed skips what is not played today. With FIELD_SHARE=N one of N scenes is played, other ones every day; FIELD_DAY=DAY plays
// those of another day.
func isPlayed(t *testing.T, n int) {
	t.Helper()
	share, err := strconv.Atoi(cmp.Or(os.Getenv("FIELD_SHARE"), "1"))
	if err != nil || share < 1 {
		t.Fatalf("FIELD_SHARE is %q: expected a number from 1", os.Getenv("FIELD_SHARE"))
	}
	if n%share != today.Day("FIELD_DAY")%share {
		t.Skipf("it is played on another day (FIELD_SHARE=%d); without FIELD_SHARE it is played every day", share)
	}
}

// scene is a story with its clusters.
type scene struct {
	*story
	t       *testing.T
	bed     *cluster.Bed
	dir     string
	config  string // the kubeconfig with the contexts east and west
	clients map[string]kubernetes.Interface
}

// begin makes the clusters and what exists before, and waits until all pods are ready.
func begin(t *testing.T, s *story) *scene {
	t.Helper()
	bed, err := cluster.StartBed(t.Context(), "", cluster.Options{PodStart: pace, PodStop: pace, DetachDelay: pace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bed.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c := &scene{story: s, t: t, bed: bed, dir: t.TempDir(), clients: map[string]kubernetes.Interface{}}
	c.config = filepath.Join(c.dir, "config")
	if err := fixture.Kubeconfig(c.config, bed.East, bed.West); err != nil {
		t.Fatal(err)
	}
	for _, on := range []*cluster.Cluster{bed.East, bed.West} {
		if c.clients[on.Name], err = kubernetes.NewForConfig(on.Config()); err != nil {
			t.Fatal(err)
		}
	}
	for name := range c.clients {
		c.kubectl("--context", name, "annotate", "storageclass", cluster.SharedClass, "storageclass.kubernetes.io/is-default-class=true")
		c.make(name)
	}
	if s.bind != "" {
		ctx, stop := context.WithCancel(t.Context())
		t.Cleanup(stop)
		go c.bound(ctx, s.bind)
	}
	for name, objects := range c.objects {
		for _, o := range objects {
			switch kind := strings.ToLower(o.GetKind()); kind {
			case "statefulset":
				c.kubectl("--context", name, "-n", o.GetNamespace(), "wait", fmt.Sprintf("--for=jsonpath={.status.readyReplicas}=%d", replicas(o)), kind+"/"+o.GetName(), "--timeout=60s")
			case "deployment", "daemonset":
				c.kubectl("--context", name, "-n", o.GetNamespace(), "rollout", "status", kind+"/"+o.GetName(), "--timeout=60s")
			}
		}
	}
	for _, command := range s.firsts {
		c.told(command)
	}
	return c
}

// make creates the objects of a cluster in the order of the file. Both clusters have all namespaces.
func (c *scene) make(name string) {
	c.t.Helper()
	var own []*unstructured.Unstructured
	for in, objects := range c.objects {
		for _, o := range objects {
			if in == name || o.GetKind() == "Namespace" {
				own = append(own, o)
			}
		}
	}
	slices.SortStableFunc(own, func(a, b *unstructured.Unstructured) int { return first(a) - first(b) })
	for n, o := range own {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			c.t.Fatal(err)
		}
		file := filepath.Join(c.dir, fmt.Sprintf("%s-%d.yaml", name, n))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			c.t.Fatal(err)
		}
		args := []string{"--context", name, "create", "-f", file}
		if by := c.managers[o.GetName()]; by != "" && o.GetKind() == "StatefulSet" {
			args = []string{"--context", name, "apply", "--server-side", "--field-manager=" + by, "-f", file}
		}
		c.kubectl(args...)
	}
}

func first(o *unstructured.Unstructured) int {
	if o.GetKind() == "Namespace" {
		return 0
	}
	return 1
}

// kubectl runs a command that must end well.
func (c *scene) kubectl(args ...string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), tooLong)
	defer cancel()
	if out, err := fixture.Command(ctx, c.config, c.dir, kubectl, args...).CombinedOutput(); err != nil {
		there, _ := fixture.Command(ctx, c.config, c.dir, kubectl, "--context", args[1], "get", "pods,persistentvolumeclaims,events", "-A").CombinedOutput()
		c.t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, out, there)
	}
}

// told runs a command of the story.
func (c *scene) told(command string) {
	c.t.Helper()
	words := strings.Fields(command)
	if words[0] != "kubectl" {
		c.t.Fatalf("%q: only kubectl is known", command)
	}
	c.kubectl(words[1:]...)
}

// bound binds the pods of schedulers that nobody runs.
func (c *scene) bound(ctx context.Context, name string) {
	client := c.clients[name]
	watched, err := client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=,spec.schedulerName!=default-scheduler"})
	if err != nil {
		c.t.Errorf("watching pods without a scheduler: %v", err)
		return
	}
	defer watched.Stop()
	n := 0
	for e := range watched.ResultChan() {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
			continue
		}
		to := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: fmt.Sprintf("%s-node-%d", name, n%3)}}
		if err := client.CoreV1().Pods(pod.Namespace).Bind(ctx, to, metav1.CreateOptions{}); err == nil {
			n++
		}
	}
}

// play checks first, because a check writes nothing, and then moves.
func (c *scene) play() {
	for _, of := range c.about() {
		for _, where := range []string{"ns", "west"} {
			c.check(of, where)
		}
	}
	if c.where == "" {
		return
	}
	plan := filepath.Join(c.dir, "plan.yaml")
	if out := c.run(c.args("plan", c.subject, c.where, "--out", plan)...); out.code != done {
		c.refused(out)
		return
	}
	m := c.carried(c.during, c.applyArgs(plan)...)
	c.judge(m)
	if c.aborts && m.code == done {
		for _, command := range c.breaks {
			c.told(command)
		}
		c.run(c.of("abort", "--yes", "--step-timeout", "20s")...)
		c.onOneSide("abort")
	}
	for _, e := range c.endings {
		if m.code != done {
			c.t.Errorf("apply ended with %d, so that nothing can be finalized:\n%s", m.code, m.said)
			return
		}
		if out := c.run(c.of("finalize", "--yes")...); !e.what.MatchString(out.said) {
			c.t.Errorf("finalize does not say %q:\n%s", e.what, out.said)
		}
	}
}

// refused says what a plan that is not made means for the story: a move that is refused has done no harm, and all that
// is expected of a move that begins is missing.
func (c *scene) refused(out outcome) {
	c.t.Helper()
	if out.code != blocked {
		c.t.Errorf("plan ended with %d:\n%s", out.code, out.said)
	}
	if len(c.messages)+len(c.endings)+len(c.during)+len(c.breaks) > 0 {
		c.t.Errorf("the plan is refused, so that nothing could be tried (flags --ignore CHECK?):\n%s", out.said)
	}
	c.onOneSide("plan")
}

// judge looks at a move that has ended, or that was ended because it could not go on.
func (c *scene) judge(m outcome) {
	c.t.Helper()
	if c.moves {
		c.onOneSide("apply")
	}
	if c.templates && m.code != held {
		c.oneTemplate()
	}
	if len(c.messages) > 0 {
		m.said += c.run(c.of("status")...).said
	}
	for _, e := range c.messages {
		if !e.what.MatchString(m.said) {
			c.t.Errorf("neither apply nor status says %q:\n%s", e.what, m.said)
		}
	}
}

// args returns the arguments of a command that selects what is moved.
func (c *scene) args(verb string, of subject, where string, more ...string) []string {
	to := map[string][]string{"ns": {"--to-namespace", of.to}, "west": {"--to-context", "west"}}[where]
	return slices.Concat([]string{verb, of.set, "--context", "east", "-n", "shop"}, to, c.flags, more)
}

// of returns the arguments of a command about the stored plan.
func (c *scene) of(verb string, more ...string) []string {
	name := c.planName()
	to := map[string][]string{"ns": {"--context", "east", "-n", c.to}, "west": {"--context", "west", "-n", "shop"}}[c.where]
	if c.where == "west" && verb != "status" {
		to = append(to, "--to-context", "west")
	}
	return slices.Concat([]string{verb, name}, to, more)
}

// planName reads the name of the plan from its file.
func (c *scene) planName() string {
	c.t.Helper()
	var made struct{ Name string }
	text, err := os.ReadFile(filepath.Join(c.dir, "plan.yaml"))
	if err = errors.Join(err, yaml.Unmarshal(text, &made)); err != nil {
		c.t.Fatal(err)
	}
	return made.Name
}

// outcome is the end of a command.
type outcome struct {
	code    int
	said    string
	printed []byte // of said, what is no message aside
}

// run runs the program until it ends. One that cannot go on is interrupted, until it ends.
func (c *scene) run(args ...string) outcome {
	c.t.Helper()
	var out, aside bytes.Buffer
	cmd := c.command(&out, args...)
	cmd.Stderr = &aside
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	code := c.end(cmd)
	return outcome{code, out.String() + aside.String(), out.Bytes()}
}

func (c *scene) command(out *bytes.Buffer, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(c.t.Context(), tooLong)
	c.t.Cleanup(cancel)
	cmd := fixture.Command(ctx, c.config, c.dir, binary, args...)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd
}

// end waits for a command. One that is stuck is stopped; what it has left behind is judged.
func (c *scene) end(cmd *exec.Cmd) int {
	c.t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its exit code says more
	}()
	select {
	case <-ended:
	case <-time.After(stuck):
		c.t.Logf("%s goes on after %s, and is killed", strings.Join(cmd.Args[1:3], " "), stuck)
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			c.t.Error(err)
		}
		<-ended
	}
	return cmd.ProcessState.ExitCode()
}

// check runs check until it says what is expected: a policy is in force some time after it was made.
func (c *scene) check(of subject, where string) {
	c.t.Helper()
	missing := slices.DeleteFunc(slices.Clone(c.checks), func(e expected) bool { return e.of != of || e.where != where })
	if len(missing) == 0 {
		return
	}
	var last outcome
	err := wait.PollUntilContextTimeout(c.t.Context(), time.Second, settling, true, func(context.Context) (bool, error) {
		last = c.run(c.args("check", of, where, "-o", "json")...)
		missing = slices.DeleteFunc(missing, func(e expected) bool { return e.met(last) })
		return len(missing) == 0, nil
	})
	if err != nil {
		for _, e := range missing {
			c.t.Errorf("check %s to %s: expected %s %q", of.set, where, e.level, e.what)
		}
		c.t.Log(brief(last))
	}
}

// brief returns what was found, in lines.
func brief(out outcome) string {
	var report preflight.Report
	if json.Unmarshal(out.printed, &report) != nil {
		return out.said
	}
	text := fmt.Sprintf("exit code %d\n", out.code)
	for _, r := range report.Checks {
		for _, f := range r.Findings {
			text += fmt.Sprintf("%s %s\n", f.Level, f)
		}
	}
	return text
}

// met reports whether a check has said what is expected.
func (e expected) met(out outcome) bool {
	var report preflight.Report
	if json.Unmarshal(out.printed, &report) != nil {
		return false
	}
	for _, r := range report.Checks {
		if e.level == "PASS" && r.Level == check.Fail && e.what.MatchString(r.Name) {
			return false
		}
		for _, f := range r.Findings {
			if (f.Level == check.Fail || string(f.Level) == e.level) && e.what.MatchString(f.String()+" "+f.Remedy) {
				return e.level != "PASS"
			}
		}
	}
	return e.level == "PASS" && out.code == done
}

// lines gives what a command writes to whoever waits for a line.
type lines struct {
	text  bytes.Buffer
	watch func(line string)
}

func (l *lines) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		l.watch(string(line))
	}
	return l.text.Write(p)
}

// applyArgs returns the arguments of apply.
func (c *scene) applyArgs(plan string) []string {
	args := []string{"apply", plan, "--yes", "--context", "east", "--step-timeout", "20s"}
	if c.where == "west" {
		args = append(args, "--to-context", "west")
	}
	return args
}

// carried carries the plan out by a command, and runs what the story does meanwhile.
func (c *scene) carried(during []interlude, args ...string) outcome {
	c.t.Helper()
	var none bytes.Buffer
	cmd, told := c.command(&none, args...), make(chan string, len(during))
	waiting := slices.Clone(during)
	out := &lines{watch: func(line string) {
		waiting = slices.DeleteFunc(waiting, func(i interlude) bool {
			found := i.at.MatchString(line)
			if found {
				told <- i.command
			}
			return found
		})
	}}
	cmd.Stdout, cmd.Stderr = out, out
	sampled := c.sample()
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for command := range told {
			c.run2(command)
		}
	}()
	code := c.end(cmd)
	close(told)
	<-ended
	if least := sampled(); c.ready > 0 && least < c.ready {
		c.t.Errorf("only %d members were Ready in two samples that follow one another, expected %d", least, c.ready)
	}
	for _, i := range waiting {
		c.t.Errorf("%s never printed %q:\n%s", args[0], i.at, out.text.String())
	}
	return outcome{code: code, said: out.text.String()}
}

// run2 is told outside of the goroutine of the test.
func (c *scene) run2(command string) {
	args := strings.Fields(command)[1:]
	if out, err := fixture.Command(c.t.Context(), c.config, c.dir, kubectl, args...).CombinedOutput(); err != nil {
		c.t.Errorf("%s: %v\n%s", command, err, out)
	}
}

// sample counts the members that are Ready on either side, until it is called; it returns the largest number that two
// samples which follow one another did not go below, at the worst moment.
func (c *scene) sample() func() int {
	ctx, stop := context.WithCancel(c.t.Context())
	result := make(chan int, 1)
	go func() {
		least, before := 1<<30, 1<<30
		for ctx.Err() == nil {
			ready, _, err := c.members(ctx)
			if err == nil {
				least, before = min(least, max(ready, before)), ready
			}
			select {
			case <-ctx.Done():
			case <-time.After(pace):
			}
		}
		result <- least
	}()
	return func() int { stop(); return <-result }
}

// members returns how many ordinals are Ready, and those that run on neither side.
func (c *scene) members(ctx context.Context) (ready int, nowhere []string, err error) {
	at := map[string]bool{}
	for _, place := range c.places() {
		pods, err := c.clients[place[0]].CoreV1().Pods(place[1]).List(ctx, metav1.ListOptions{})
		if err != nil {
			return 0, nil, err
		}
		for _, p := range pods.Items {
			if owner := metav1.GetControllerOf(&p); owner != nil && owner.Name == c.set && p.DeletionTimestamp == nil {
				at[p.Name] = at[p.Name] || slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
					return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
				})
			}
		}
	}
	for n := range c.replicas() {
		name := fmt.Sprintf("%s-%d", c.set, n)
		if at[name] {
			ready++
		} else {
			nowhere = append(nowhere, name)
		}
	}
	return ready, nowhere, nil
}

// places returns the cluster and namespace of each side.
func (c *scene) places() [][2]string {
	if c.where == "west" {
		return [][2]string{{"east", "shop"}, {"west", "shop"}}
	}
	return [][2]string{{"east", "shop"}, {"east", c.to}}
}

// replicas returns how many ordinals the set has at the beginning.
func (c *scene) replicas() int64 {
	for _, o := range c.objects["east"] {
		if o.GetKind() == "StatefulSet" && o.GetName() == c.set {
			return replicas(o)
		}
	}
	return 0
}

func replicas(o *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	return n
}

// onOneSide fails if an ordinal is Ready on neither side. One that has just arrived has a moment.
func (c *scene) onOneSide(after string) {
	c.t.Helper()
	var nowhere []string
	err := wait.PollUntilContextTimeout(c.t.Context(), pace, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		var err error
		_, nowhere, err = c.members(ctx)
		return err == nil && len(nowhere) == 0, nil
	})
	if err != nil {
		c.t.Errorf("after %s %s are Ready on neither side", after, nowhere)
	}
}

// oneTemplate fails if the pods of the two sides run different containers.
func (c *scene) oneTemplate() {
	c.t.Helper()
	seen := map[string][]string{}
	for _, place := range c.places() {
		pods, err := c.clients[place[0]].CoreV1().Pods(place[1]).List(c.t.Context(), metav1.ListOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		sets, err := c.clients[place[0]].AppsV1().StatefulSets(place[1]).Get(c.t.Context(), c.set, metav1.GetOptions{})
		if err == nil {
			seen[containers(sets.Spec.Template.Spec)] = append(seen[containers(sets.Spec.Template.Spec)], "the set of "+place[1])
		}
		for _, p := range pods.Items {
			if owner := metav1.GetControllerOf(&p); owner != nil && owner.Name == c.set {
				seen[containers(p.Spec)] = append(seen[containers(p.Spec)], place[1]+"/"+p.Name)
			}
		}
	}
	if len(seen) != 1 {
		c.t.Errorf("the pods have %d templates: %v", len(seen), seen)
	}
}

var generated = regexp.MustCompile(`kube-api-access-\w+`)

func containers(s corev1.PodSpec) (out string) {
	for _, one := range s.Containers {
		out += fmt.Sprintf("%s: %s %v %v %v; ", one.Name, one.Image, one.Command, one.Args, one.Env)
	}
	return generated.ReplaceAllString(out, "")
}
