package move_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// checkArgs returns the arguments of plan that select what is moved, for the check command.
func (s *migration) checkArgs(more ...string) []string {
	args := without(without(s.planArgs(more...), "--out"), s.planFile)
	args[0] = "check"
	return args
}

// checked runs the checks and returns their results by name.
func (s *migration) checked(code int, more ...string) map[string]preflight.Result {
	s.t.Helper()
	r := run(s.t, s.checkArgs(append(more, "-o", "json")...)...).expect(s.t, code)
	var report preflight.Report
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		s.t.Fatalf("%v:\n%s", err, r.stdout)
	}
	out := map[string]preflight.Result{}
	for _, c := range report.Checks {
		out[c.Name] = c
	}
	return out
}

func TestCheckListsWhatEveryCheckFinds(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		before := s.versions()
		all := run(t, s.checkArgs()...).expect(t, done, "PASS  permissions", "PASS  one-cluster", "PASS  api-version", "PASS  nodes-fit", "PASS  argocd",
			"WARN  ready-for-a-while", "0 failed", "\nWARN ready-for-a-while: StatefulSet "+s.source.namespace+"/web in east\n  expected every pod Ready for 5 minutes\n")
		if len(all.complaints()) > 0 || strings.Contains(all.stdout, "FAIL") {
			t.Errorf("nothing fails, but:\n%s%s", all.stdout, all.stderr)
		}
		for name, c := range s.checked(done) {
			if c.Group == "" || c.About == "" || c.Level == "" || (c.Level == check.Pass) != (len(c.Findings) == 0) {
				t.Errorf("check %s: %+v", name, c)
			}
		}
		mendSource, mend := s.put(s.source, autoscaler(s.source)), s.put(s.destination, autoscaler(s.destination))
		text := run(t, s.checkArgs()...).expect(t, blocked, "FAIL  autoscaler", "\nFAIL autoscaler: StatefulSet "+s.destination.namespace+"/web in ", "1 failed",
			" --context east -n "+s.source.namespace+" delete hpa web\n").stdout
		if a, b := strings.Index(text, "StatefulSet "+s.source.namespace+"/web"), strings.LastIndex(text, "FAIL autoscaler"); a > b {
			t.Errorf("the source is not the first:\n%s", text)
		}
		found := s.checked(blocked)["autoscaler"]
		if found.Level != check.Fail || len(found.Findings) != 2 || found.Findings[1].Want != "no autoscaler" || !strings.HasPrefix(found.Findings[1].Remedy, "save it and delete it") {
			t.Errorf("autoscaler: %+v", found)
		}
		run(t, s.checkArgs("--ignore", "autoscaler")...).expect(t, failed, "error: --ignore: check autoscaler cannot be ignored", "nodes-fit")
		run(t, s.checkArgs("--ignore", "autoscalers")...).expect(t, failed, `error: --ignore: there is no check "autoscalers"`, "nodes-fit")
		mend()
		mendSource()
		same(t, "objects", before, s.versions())

		s.kubeconfig, mend = s.reader()
		defer mend()
		run(t, with(s.checkArgs(), "--kubeconfig", s.kubeconfig)...).expect(t, blocked, "FAIL  permissions", "not run: without the right to look", "you may not")
	})
}

// The ignored checks are part of the plan, and apply wherever the plan is checked again.
func TestWhatIsIgnoredIsKeptInThePlan(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		var claim corev1.PersistentVolumeClaim
		if err := s.source.Get(t.Context(), s.source.key("data-web-1"), &claim); err != nil {
			t.Fatal(err)
		}
		s.change(&end{Client: s.source.Client, cluster: s.source.cluster, namespace: ""}, &corev1.PersistentVolume{}, claim.Spec.VolumeName,
			`{"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["nowhere"]}]}]}}}}`)
		run(t, s.planArgs()...).expect(t, blocked, "  FAIL nodes-fit: pod web-1 on the destination", "where its volume cannot be reached")
		run(t, s.planArgs("--ignore", "nodes-fit,old-names", "--ignore", "ready-for-a-while")...).expect(t, done, "ignored      the findings of these checks: nodes-fit, old-names, ready-for-a-while")
		run(t, s.checkArgs("--ignore", "nodes-fit")...).expect(t, done, "WARN  nodes-fit", "(ignored)", "1 ignored, 0 failed")
		c := s.checked(done, "--ignore", "nodes-fit")["nodes-fit"]
		if c.Level != check.Warn || len(c.Findings) != 1 || !c.Findings[0].Ignored {
			t.Errorf("nodes-fit: %+v", c)
		}
		again := append([]string{"check", s.planFile}, s.applyArgs()[3:]...)
		run(t, again...).expect(t, done, "WARN  nodes-fit", "(ignored)", "2 ignored, 0 failed")
		run(t, append(again, "--ignore", "drains")...).expect(t, failed, "has its own list")
		if r := run(t, without(s.applyArgs(), "--yes")...).expect(t, failed, "not a terminal"); strings.Contains(r.stderr, "nodes-fit") {
			t.Errorf("apply does not keep to what the plan ignores:\n%s", r.stderr)
		}
	})
}

func TestChecksLookAtWhatAMoveWouldStumbleOver(t *testing.T) {
	inBothModes(t, options{replicas: 1}, func(s *migration) {
		t := s.t
		for _, c := range []struct {
			name, check string
			level       check.Level
			prepare     func() (mend func())
			says        []string
		}{
			{"a quota that refuses the set", "admission", check.Fail, func() func() {
				return s.put(s.destination, &corev1.ResourceQuota{ObjectMeta: s.destination.named("none"), Spec: corev1.ResourceQuotaSpec{
					Hard: corev1.ResourceList{"count/statefulsets.apps": resource.MustParse("0")},
				}})
			}, []string{"it refuses the set", "quota"}},
			{"somebody else's pod with the set's labels", "selector", check.Fail, func() func() {
				pod := strayPod(s.destination, "none")
				pod.Labels = map[string]string{"app": "web"}
				return s.put(s.destination, pod)
			}, []string{"pod " + s.destination.namespace + "/stray on the destination", "app=web"}},
			{"a Service that hides pods that are not ready", "service", check.Warn, func() func() {
				s.change(s.source, &corev1.Service{}, "web", `{"spec":{"publishNotReadyAddresses":true}}`)
				mend := s.put(s.destination, &corev1.Service{ObjectMeta: s.destination.named("web"), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80}}}})
				return func() {
					mend()
					s.change(s.source, &corev1.Service{}, "web", `{"spec":{"publishNotReadyAddresses":false}}`)
				}
			}, []string{"publishNotReadyAddresses is false", "true, as on the source"}},
		} {
			mend := c.prepare()
			s.finds(c.name, c.check, c.level, c.says...)
			mend()
			if got := s.checked(done)[c.check]; got.Level != check.Pass {
				t.Errorf("without %s: %+v", c.name, got)
			}
		}
		s.old(t)
		s.snapped(t)
		s.trusting(t)
	})
}

// snapped takes snapshots of the claims.
func (s *migration) snapped(t *testing.T) {
	t.Helper()
	kind := schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot"}
	s.learns(s.source, kind)
	s.finds("a cluster that takes snapshots, without any", "snapshots", check.Warn, " claims have no VolumeSnapshot younger than 24 hours that is ready: data-web-0")
	for _, claim := range []string{"data-web-0", "logs-web-0"} {
		snapshot := custom(s.source, kind, claim, map[string]any{"source": map[string]any{"persistentVolumeClaimName": claim}})
		snapshot.Object["status"] = map[string]any{"readyToUse": true, "creationTime": time.Now().UTC().Format(time.RFC3339)}
		defer s.put(s.source, snapshot)()
	}
	if got := s.checked(done)["snapshots"]; got.Level != check.Pass {
		t.Errorf("with snapshots: %+v", got)
	}
}

// trusting uses a kubeconfig that does not verify the certificate of the source.
func (s *migration) trusting(t *testing.T) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(s.source.cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Clusters {
		c.InsecureSkipTLSVerify, c.CertificateAuthority, c.CertificateAuthorityData = true, "", nil
	}
	file := filepath.Join(t.TempDir(), "trusting")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	r := run(t, with(s.checkArgs(), "--kubeconfig", file)...).expect(t, done, "WARN  connection", "its certificate is not verified (insecure-skip-tls-verify)")
	sides := map[mode]int{rebind: 2, reimport: 1}[s.mode]
	if n := strings.Count(r.stdout, "WARN connection: "); n != sides {
		t.Errorf("%d of %d API servers are warned of:\n%s", n, sides, r.stdout)
	}
}

// old puts a name in the old namespace where the application reads it.
func (s *migration) old(t *testing.T) {
	t.Helper()
	name := "web-0.web." + s.source.namespace + ".svc.cluster.local"
	s.change(s.source, &corev1.ConfigMap{}, "web", `{"data":{"peers":"a: 1\nhost: `+name+`\n"}}`)
	s.change(s.source, &corev1.Secret{}, "web", `{"stringData":{"dsn":"postgres://`+name+`"}}`)
	if s.mode == reimport { // the namespace stays the same
		if got := s.checked(done)["old-names"]; got.Level != check.Pass {
			t.Errorf("old-names: %+v", got)
		}
		return
	}
	s.finds("an old name", "old-names", check.Warn, "ConfigMap "+s.source.namespace+"/web: key peers", "finalize with --keep-names")
	text := run(t, s.checkArgs()...).expect(t, done, "Secret "+s.source.namespace+"/web: key dsn").stdout
	for _, secret := range []string{"postgres", "canary", name} {
		if strings.Contains(text, secret) {
			t.Errorf("the report has %q, which is a Secret's:\n%s", secret, text)
		}
	}
}

// finds runs the checks and requires that one of them finds the named problem.
func (s *migration) finds(what, id string, level check.Level, says ...string) {
	s.t.Helper()
	code := done
	if level == check.Fail {
		code = blocked
	}
	r := run(s.t, s.checkArgs("-o", "json")...)
	var report preflight.Report
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		s.t.Fatalf("%v:\n%s%s", err, r.stdout, r.stderr)
	}
	for _, c := range report.Checks {
		if c.Name != id {
			continue
		}
		text := ""
		for _, f := range c.Findings {
			text += strings.Join([]string{f.Object, f.Saw, f.Want, f.Remedy}, "\n") + "\n"
		}
		if c.Level != level || !hasAll(text, says) {
			s.t.Errorf("%s: check %s is %s and says\n%swant %s and %q", what, id, c.Level, text, level, says)
		}
		if r.code != code && id != "service" { // the check dependencies blocks there too
			s.t.Errorf("%s: exit code %d, want %d", what, r.code, code)
		}
		return
	}
	s.t.Errorf("%s: there is no check %s", what, id)
}

// counted returns a client that counts its requests.
func counted(t *testing.T, config *rest.Config, requests *atomic.Int64) client.Client {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			requests.Add(1)
			return next.RoundTrip(r)
		})
	})
	c, err := clusters.Connect(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return r(q) }

// Before an ordinal moves, the checks whose result may have changed since the first write run again, with few
// requests.
func TestChecksAreAskedAgainBeforeAnOrdinal(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		plan := s.plan()
		run(t, s.applyArgs("--pause-after", "1")...).expect(t, done, "paused before web-1 Tighten")
		var requests atomic.Int64
		on := clusters.Clusters{plans.Source: counted(t, s.source.cluster.Config(), &requests)}
		on[plans.Destination] = on[plans.Source]
		if s.mode == reimport {
			on[plans.Destination] = counted(t, s.destination.cluster.Config(), &requests)
		}
		j, _, err := records.NewStore(on[plans.Destination], s.destination.namespace, "web").Journal(t.Context(), plan)
		if err != nil {
			t.Fatal(err)
		}
		again := func() []check.Finding {
			t.Helper()
			waves := preflight.Waves{Plan: plan, On: on, Now: time.Now} // a new one asks everything
			found, err := waves.Check(t.Context(), j, plans.Slice{Start: 1, Replicas: 1})
			if err != nil {
				t.Fatal(err)
			}
			return found.Bars
		}
		if found := again(); len(found) > 0 { // this also fills the discovery cache
			t.Errorf("nothing has changed, but: %v", found)
		}
		before, began := requests.Load(), time.Now()
		for range 20 {
			again()
		}
		each, took := (requests.Load()-before)/20, time.Since(began)/20
		t.Logf("%s: asked again with %d requests in %s", s.mode, each, took.Round(time.Millisecond/10))
		if each > 110 {
			t.Errorf("asked again with %d requests", each)
		}
		way := newClaim("data-web-1", cluster.WaitClass)
		way.Namespace = s.destination.namespace
		stays := newClaim("data-web-0", cluster.WaitClass) // of an ordinal that is not checked
		stays.Namespace = s.destination.namespace
		mends := []func(){s.put(s.source, autoscaler(s.source)), s.put(s.destination, &way), s.put(s.destination, &stays)}
		var says []string
		for _, f := range again() {
			says = append(says, f.Check+": "+f.Object)
		}
		same(t, "what is found", []string{"destination-free: claim " + s.destination.namespace + "/data-web-1", "autoscaler: StatefulSet " + s.source.namespace + "/web in east"}, says)
		for _, mend := range mends {
			mend()
		}
		run(t, s.args("resume")...).expect(t, done, "moved: 3 ordinals")
		j.Leg.Direction = plans.Abort
		mend := s.put(s.source, autoscaler(s.source))
		if found := again(); len(found) > 0 {
			t.Errorf("the abort is barred: %v", found)
		}
		mend()
	})
}
