package orchestrator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/stsmigrate/stsmigrate/internal/dashboard"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// put shows a plan on the page.
func (w *Setup) put(s standing) {
	r := dashboard.New(w.Namespace, s.name, s.state, s.plan, s.journal)
	id, why := s.message()
	r.Reason, r.Next = records.Brief(why), s.next(w.Namespace)
	r.Explained(string(id), reasons.Runbook(id))
	r.Attention = r.Attention || s.wrong != nil || s.state.Approval()
	since := w.Now()
	if s.declared != nil {
		if is := s.declared.Status; is.Since != nil && is.State == s.state {
			since = is.Since.UTC()
		}
		r.Since = &since
	}
	w.Board.Set(r)
}

// judge accepts tokens of users who may list plans, as the API server knows and authorizes them.
type judge struct {
	live      client.Client
	namespace string
	limit     *rate.Limiter
}

// At most so many tokens are judged per second, since each costs requests to the API server.
const (
	tokensPerSecond = 10
	tokensAtOnce    = 20
)

func (j judge) accept(ctx context.Context, token string) error {
	if !j.limit.Allow() {
		return errors.New("too many pages are opened at once")
	}
	review := authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := j.live.Create(ctx, &review); err != nil {
		return errors.New("the API server does not review it") // its error might quote the request
	}
	if !review.Status.Authenticated {
		return dashboard.ErrWho{Why: errors.New("the API server does not know this token")}
	}
	u := review.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for k, v := range u.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	kind := records.DeclarationKind()
	for resource, group := range map[string]string{"statefulsetmigrations": kind.Group, "configmaps": ""} {
		may := authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: u.Username, UID: u.UID, Groups: u.Groups, Extra: extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: j.namespace, Verb: "list", Group: group, Resource: resource},
		}}
		if err := j.live.Create(ctx, &may); err != nil {
			return errors.New("the API server does not authorize it")
		}
		if !may.Status.Allowed || may.Status.Denied {
			return dashboard.ErrMay{Why: fmt.Errorf("%s may not list %s in namespace %s: bind the Role stsmigrate-user there", plans.Line(u.Username), resource, j.namespace)}
		}
	}
	return nil
}

// servePage serves the page over TLS until ctx ends.
func (w *Setup) servePage(address, certDir string) manager.RunnableFunc {
	return func(ctx context.Context) error {
		verified, err := pageCertificate(ctx, certDir)
		if err != nil {
			return fmt.Errorf("dashboard: %w", err)
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("dashboard: %w", err)
		}
		log.Log.WithName("dashboard").Info("serving the page of all plans", "address", l.Addr().String())
		return w.pages(ctx, tls.NewListener(l, verified))
	}
}

func (w *Setup) pages(ctx context.Context, l net.Listener) error {
	who := judge{live: w.Live, namespace: w.Namespace, limit: rate.NewLimiter(tokensPerSecond, tokensAtOnce)}
	page := dashboard.Server{Board: w.Board, Accept: who.accept, Done: ctx.Done(), Now: w.Now}
	s := &http.Server{Handler: page.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("dashboard: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return s.Shutdown(last)
}

// pageCertificate returns the certificate of the page: that of a folder, read anew when it changes, or one that
// no authority has signed.
func pageCertificate(ctx context.Context, dir string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}} // browsers open few streams
	if dir == "" {
		cert, key, err := certutil.GenerateSelfSignedCertKeyWithFixtures("localhost", []net.IP{{127, 0, 0, 1}}, nil, "")
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(cert, key)
		c.Certificates = []tls.Certificate{pair}
		return c, err
	}
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if _, err := os.Stat(cert); err != nil {
		return nil, fmt.Errorf("its certificate: %w", err)
	}
	w, err := certwatcher.New(cert, key)
	if err != nil {
		return nil, fmt.Errorf("its certificate: %w", err)
	}
	c.GetCertificate = w.GetCertificate
	go func() {
		if err := w.Start(ctx); err != nil {
			log.Log.WithName("dashboard").Error(err, "a new certificate will not be noticed")
		}
	}()
	return c, nil
}
