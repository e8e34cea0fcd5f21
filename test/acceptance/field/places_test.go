package field_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// refused is a set as people have it, for which there is no place over there.
type refused struct {
	story, set, where string
	ignore            string // the check that finds it, which is told to be silent
	patch             string // of the pods
	during            string // a command while the first ordinals leave
	limit             string // how many pods the nodes of west take
	says              string // who refuses the place
	room              string // a command that makes room
	bound             bool   // whether a scheduler of another name begins to run, which makes room too
}

const (
	bothNamespaces = "spec: {template: {spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" +
		"{labelSelector: {matchLabels: {app: web}}, namespaces: [shop, mall], topologyKey: kubernetes.io/hostname}]}}}}}"
	overRacks = "spec: {template: {spec: {topologySpreadConstraints: [" +
		"{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]}}}"
	another    = "spec: {template: {spec: {schedulerName: fancy}}}"
	caches     = "create deployment cache --image=registry.example/shop/cache:1 --replicas=3"
	fourthNode = `{apiVersion: v1, kind: Node, metadata: {name: east-node-3, annotations: {kwok.x-k8s.io/node: fake},
  labels: {kubernetes.io/hostname: east-node-3, topology.kubernetes.io/zone: zone-a}},
  status: {capacity: {cpu: "32", memory: 256Gi, pods: "110"}, allocatable: {cpu: "32", memory: 256Gi, pods: "110"}}}`
)

func refusals() map[string]refused {
	return map[string]refused{
		"pod affinity":      {story: "02-required-pod-affinity", where: "ns", ignore: "nodes-fit", says: "didn't match pod affinity rules", room: "kubectl --context east -n mall " + caches},
		"a host port":       {story: "03-host-port-taken", where: "west", ignore: "nodes-fit", says: "didn't have free ports for the requested pod ports", room: "kubectl --context west -n gateway delete daemonset gateway"},
		"anti-affinity":     {story: "04-anti-affinity-of-one-namespace", where: "ns", ignore: "nodes-fit", patch: bothNamespaces, says: "didn't match pod anti-affinity rules", room: "kubectl --context east create -f node.yaml"},
		"others' namespace": {story: "scheduler", set: "beside", where: "west", ignore: "nodes-fit", says: "didn't match pod affinity rules", room: "kubectl --context west -n shop " + caches},
		"agents":            {story: "scheduler", set: "away", where: "west", ignore: "nodes-fit", says: "didn't match pod anti-affinity rules", room: "kubectl --context west -n agents delete daemonset agent"},
		"a port of TCP":     {story: "scheduler", set: "tcp", where: "west", ignore: "nodes-fit", says: "didn't have free ports for the requested pod ports", room: "kubectl --context west -n agents delete daemonset agent"},
		"spread":            {story: "14-limits-of-the-namespace", where: "ns", ignore: "nodes-fit", patch: overRacks, says: "didn't match pod topology spread constraints", room: "kubectl --context east label nodes --all rack=r1"},
		"a scheduler":       {story: "14-limits-of-the-namespace", where: "ns", ignore: "nodes-fit", patch: another, says: "scheduler fancy has said nothing of it yet", bound: true},
		"a pod limit":       {story: "scheduler", set: "udp", where: "west", ignore: "nodes-fit", limit: "1", says: "Too many pods", room: "kubectl --context west -n agents delete daemonset agent"},
		"a quota":           {story: "17-quota-made-later", where: "ns", during: "kubectl --context east -n mall create quota pods --hard=pods=2", says: "exceeded quota", room: "kubectl --context east -n mall delete quota pods"},
	}
}

// What no check has found, since it was told to be silent, the placeholder alone finds: every ordinal stays up and nothing is in
// flight, whoever refuses the place is heard, and the plan goes on by itself when there is room.
func TestAPlaceThatIsRefusedIsFoundByItsPlaceholderAlone(t *testing.T) {
	all := refusals()
	for n, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			isPlayed(t, n)
			t.Parallel()
			r := all[name]
			s, err := read(filepath.Join("testdata", r.story+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			s.where, s.firsts = r.where, nil
			if r.set != "" {
				s.subject = subject{r.set, "mall"}
			}
			begin(t, s).stays(r)
		})
	}
}

// stays plays a set for which there is no place.
func (c *scene) stays(r refused) {
	t, plan := c.t, filepath.Join(c.dir, "plan.yaml")
	flags := []string{"--placeholder", "schedule", "--out", plan}
	if r.ignore != "" {
		flags = append(flags, "--ignore", r.ignore)
	}
	for name, text := range map[string]string{"patch.yaml": r.patch, "node.yaml": fourthNode} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for n := 0; r.limit != "" && n < 3; n++ {
		c.kubectl("--context", "west", "patch", "node", fmt.Sprintf("west-node-%d", n), "--subresource=status", "--type=merge", "-p", fmt.Sprintf(`{"status":{"allocatable":{"pods":%[1]q},"capacity":{"pods":%[1]q}}}`, r.limit))
	}
	if r.patch != "" {
		flags = append(flags, "--patch", filepath.Join(c.dir, "patch.yaml"))
	}
	if out := c.run(c.args("plan", c.subject, c.where, flags...)...); out.code != done {
		t.Fatalf("the plan is not made:\n%s", out.said)
	}
	says, patience, during := regexp.MustCompile(r.says), "5s", []interlude(nil)
	if r.during != "" {
		patience, during = "20s", []interlude{{regexp.MustCompile("Shrink"), r.during}}
	}
	c.holds(c.carried(during, append(c.applyArgs(plan), "--step-timeout", patience)...), says)
	var goesOn []interlude
	switch {
	case r.bound:
		go c.bound(t.Context(), "east")
	case r.during != "": // resume looks at quotas before it begins
		c.told(r.room)
	default:
		goesOn = []interlude{{says, r.room}}
	}
	resume := []string{"resume", c.planName(), "--yes", "--context", "east", "-n", c.to}
	if c.where == "west" {
		resume = []string{"resume", c.planName(), "--yes", "--context", "east", "--to-context", "west", "--to-namespace", "shop"}
	}
	if out := c.carried(goesOn, resume...); out.code != done {
		c.t.Errorf("there is room, and it ends with %d:\n%s", out.code, out.said)
	}
	c.onOneSide("resume")
}

// holds checks that a plan is held with every ordinal up.
func (c *scene) holds(out outcome, says *regexp.Regexp) {
	c.t.Helper()
	if out.code != held || !says.MatchString(out.said) {
		c.t.Errorf("it ends with %d, expected %d and %q:\n%s", out.code, held, says, out.said)
	}
	var v struct {
		Reason      string
		Unavailable *int32
		InFlight    any
	}
	status := c.run(c.of("status", "-o", "json")...)
	err := json.Unmarshal(status.printed, &v)
	if err != nil || !says.MatchString(v.Reason) || v.InFlight != nil || v.Unavailable == nil || *v.Unavailable > 0 {
		c.t.Errorf("the status does not say %q with every ordinal up and nothing in flight (%v):\n%s", says, err, status.said)
	}
	ready, _, err := c.members(c.t.Context())
	if err != nil || int64(ready) != c.replicas() {
		c.t.Errorf("%d ordinals are ready (%v)", ready, err)
	}
}
