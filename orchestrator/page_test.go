package orchestrator

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dashboard"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// asks returns an API server that knows the token of anna, and lets her list these resources.
func asks(may map[string]bool, down string) client.Client {
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			switch o := o.(type) {
			case *authenticationv1.TokenReview:
				if down == "review" {
					return errors.New("cannot review s3cret")
				}
				o.Status.Authenticated = o.Spec.Token == "s3cret"
				o.Status.User = authenticationv1.UserInfo{Username: "anna", UID: "7", Groups: []string{"shop"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
			case *authorizationv1.SubjectAccessReview:
				if down == "access" {
					return errors.New("cannot authorize")
				}
				a := o.Spec.ResourceAttributes
				whole := o.Spec.User == "anna" && o.Spec.UID == "7" && len(o.Spec.Groups) == 1 && len(o.Spec.Extra["k"]) == 1
				o.Status.Allowed = whole && a.Namespace == "stsmigrate" && may[a.Verb+" "+a.Resource+"."+a.Group]
			default:
				return errors.New("unexpected")
			}
			return nil
		},
	})
}

// Rows are for users who may list the plans: the API server says who they are and what they may.
func TestThePageIsForThoseWhoMayListPlans(t *testing.T) {
	all := map[string]bool{"list statefulsetmigrations.stsmigrate.dev": true, "list configmaps.": true}
	for name, c := range map[string]struct {
		token, down string
		may         map[string]bool
		who, is, ok bool
	}{
		"anna":                          {"s3cret", "", all, false, false, true},
		"an unknown user":               {"other", "", all, true, false, false},
		"a user without rights":         {"s3cret", "", nil, false, true, false},
		"one who may list half of it":   {"s3cret", "", map[string]bool{"list configmaps.": true}, false, true, false},
		"one who may get only":          {"s3cret", "", map[string]bool{"get statefulsetmigrations.stsmigrate.dev": true, "get configmaps.": true}, false, true, false},
		"an API server that is out":     {"s3cret", "review", all, false, false, false},
		"one that is out in the middle": {"s3cret", "access", all, false, false, false},
	} {
		j := judge{live: asks(c.may, c.down), namespace: "stsmigrate", limit: rate.NewLimiter(1, 1)}
		err := j.accept(t.Context(), c.token)
		if (err == nil) != c.ok || errors.As(err, new(dashboard.ErrWho)) != c.who || errors.As(err, new(dashboard.ErrMay)) != c.is || err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
		if err := j.accept(t.Context(), c.token); err == nil || errors.As(err, new(dashboard.ErrWho)) {
			t.Errorf("%s, once more within a second: %v", name, err)
		}
	}
}

// The page follows the plans: what has happened is on it after the next reconcile, and a plan that is gone is not.
func TestThePageFollowsThePlans(t *testing.T) {
	h, p := fixture(t)
	h.ending = true
	row := func() dashboard.Row {
		t.Helper()
		news, _, _ := h.Board.Since(0)
		if len(news.Rows) != 1 {
			t.Fatalf("%+v", news.Rows)
		}
		return news.Rows[0]
	}
	turn(t, h, p, func(*journal.Journal) {})
	if r := row(); r.State != "Planned" || r.Plan != "web" || r.Namespace != "stsmigrate" || r.Ordinals != 3 || !r.Since.Equal(h.Now()) {
		t.Errorf("%+v", r)
	}
	began := h.Now()
	h.Now = func() time.Time { return began.Add(time.Hour) }
	turn(t, h, p, func(*journal.Journal) {})
	if r := row(); !r.Since.Equal(began) {
		t.Errorf("it is in its state since %s, expected %s", r.Since, began)
	}
	turn(t, h, p, func(j *journal.Journal) { j.Epoch = 1; j.Block(reasons.SetDiffers, "a claim is in the way") })
	turn(t, h, p, func(*journal.Journal) {})
	if r := row(); r.State != "Blocked" || r.Reason != "a claim is in the way" || !r.Attention || !strings.Contains(r.Next, "stsmigrate resume web") || !r.Since.Equal(h.Now()) {
		t.Errorf("%+v", r)
	}
	h.forget(p.Name, false)
	if news, _, _ := h.Board.Since(0); len(news.Rows) != 0 {
		t.Errorf("%+v", news.Rows)
	}
}

// The page is served by TLS, and its end is that of the process.
func TestThePageIsServedByTLS(t *testing.T) {
	h, p := fixture(t)
	h.ending = true
	turn(t, h, p, func(*journal.Journal) {})
	h.Live = asks(map[string]bool{"list statefulsetmigrations.stsmigrate.dev": true, "list configmaps.": true}, "")
	h.Now = func() time.Time { return time.Now() } //nolint:forbidigo // it limits writes to a real connection
	verified, err := pageCertificate(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- h.pages(ctx, tls.NewListener(l, verified)) }()
	trusting := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+l.Addr().String()+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer s3cret")
	a, err := trusting.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	in := bufio.NewReader(a.Body)
	_, _ = in.ReadString('\n')
	if line, err := in.ReadString('\n'); err != nil || a.StatusCode != 200 || !strings.Contains(line, `"plan":"web"`) {
		t.Errorf("%d %s %v", a.StatusCode, line, err)
	}
	cancel()
	select {
	case err := <-over:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("an open page keeps the process from ending")
	}
}
