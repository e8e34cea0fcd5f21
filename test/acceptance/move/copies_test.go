package move_test

import (
	"regexp"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A password was rotated on the destination after the move: status and verify say so from that moment on, without the
// value, a dry run of the abort says that it would be held, and the abort is, with every ordinal up. With the word that it
// has printed it goes on, and both passwords are there afterwards.
func TestAnAbortAfterARotationIsHeld(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		s.planned()
		run(t, s.applyArgs()...).expect(t, done, "moved: 3 ordinals")
		s.verified()
		s.change(s.destination, &corev1.Secret{}, "web", `{"stringData":{"password":"canary-rotated"}}`)
		const says = "Secret/web: data[password] differs"
		whose := []string{"on the source written by", "on the destination written by kubectl-edit", "the destination's is newer"}
		var all []string
		hears := func(r result) {
			all = append(all, r.stdout+r.stderr)
		}
		hears(run(t, s.args("status")...).expect(t, done, append(whose, "differs", says)...))
		hears(run(t, s.args("verify")...).expect(t, blocked, append(whose, "S18", says, "-n "+s.destination.namespace+" get secret web -o jsonpath=")...))
		hears(run(t, s.args("abort", "--dry-run=server")...).expect(t, blocked, "HELD: Tighten", "data[password]", "Secret/web:"))
		p := start(t, s.args("abort")...)
		p.until(says, "--other-copy Secret/web:")
		p.signal(syscall.SIGINT)
		said := p.end().expect(t, interrupted)
		hears(said)
		s.ready(s.destination)
		word := regexp.MustCompile(`--other-copy (Secret/web:[0-9a-f]{8})`).FindStringSubmatch(said.stdout)
		hears(run(t, s.args("abort", "--other-copy", word[1])...).expect(t, done, "aborted"))
		s.ready(s.source)
		for on, want := range map[*end]string{s.source: "canary-7f3a", s.destination: "canary-rotated"} {
			var now corev1.Secret
			if err := on.Get(t.Context(), client.ObjectKeyFromObject(&corev1.Secret{ObjectMeta: on.named("web")}), &now); err != nil || string(now.Data["password"]) != want {
				t.Errorf("the password in %s is not what it was (%v)", on.namespace, err)
			}
		}
		s.keepsSecrets()
		for _, text := range all {
			if strings.Contains(text, "canary") {
				t.Error("a password is in the output")
			}
		}
	})
}

// A password was rotated on the source after it was copied: the move waits with every ordinal up until the copy has it too,
// and goes on by itself.
func TestAMoveAfterARotationWaitsForTheCopy(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		s.planned()
		run(t, s.applyArgs("--pause-after", "1")...).expect(t, done, "paused")
		s.change(s.source, &corev1.Secret{}, "web", `{"stringData":{"password":"canary-rotated"}}`)
		p := start(t, s.args("resume")...)
		p.until("Secret/web: data[password] differs", "the source's has changed since it was copied")
		s.change(s.destination, &corev1.Secret{}, "web", `{"stringData":{"password":"canary-rotated"}}`)
		p.end().expect(t, done, "moved: ")
		s.verified()
	})
}
