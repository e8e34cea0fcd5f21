package main

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/orchestrator/fleet"
	"github.com/stsmigrate/stsmigrate/plans"
)

// lie is the response of a server that only pretends to be an API server. It stands for the secret of a third
// party, whose server it queries or to which it redirects.
const lie = "lie-that-nobody-may-repeat"

// liar names that server, its Secret, its context and its plan, which waits forever.
const liar = "liar"

// deceive adds a Secret with a valid kubeconfig for such a server, and a plan whose source is that server.
func (s *storm) deceive(ctx context.Context) error {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { s.strayed.Store(true) }))
	var asked atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked.Add(1) % 3 {
		case 0:
			http.Error(w, lie, http.StatusForbidden)
		case 1:
			http.Redirect(w, r, elsewhere.URL+"/"+lie, http.StatusTemporaryRedirect)
		default:
			_, _ = w.Write([]byte(lie))
		}
		s.lied.Store(true)
	}))
	s.unlie = func() { server.Close(); elsewhere.Close() }
	kubeconfig := clientcmdapi.Config{
		CurrentContext: liar,
		Contexts:       map[string]*clientcmdapi.Context{liar: {Cluster: liar, AuthInfo: liar}},
		Clusters: map[string]*clientcmdapi.Cluster{liar: {
			Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{liar: {Token: canary}},
	}
	raw, err := clientcmd.Write(kubeconfig)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: liar, Labels: map[string]string{fleet.Label: liar}},
		Data:       map[string][]byte{"kubeconfig": raw},
	}
	if err := s.east.Create(ctx, secret); err != nil {
		return err
	}
	p := &plans.Plan{
		APIVersion: plans.APIVersion, Kind: plans.PlanKind, Name: liar, ID: liar + "-1", Count: 1, MaxUnavailable: 1, Window: 1,
		Source:      plans.Ref{Cluster: liar, Context: liar, Namespace: liar, Name: liar},
		Destination: plans.Ref{Cluster: "west", Context: "west", Namespace: liar, Name: liar},
		Budget:      plans.Budget{Source: liar, Destination: liar},
	}
	if p.Hash, err = plans.Fingerprinted(p); err != nil {
		return err
	}
	if err := records.NewStore(s.east, home, liar).CreatePlan(ctx, p); err != nil {
		return err
	}
	return records.Declare(ctx, s.east, home, p, func(*plans.Declaration) error { return nil })
}
