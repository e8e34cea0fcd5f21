package expanded

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
)

func TestNamesOfTheOldNamespaceAreFound(t *testing.T) {
	of := names{ends: staleName([]string{"web", "db"}, "shop"), kept: map[string]bool{"db": true}}
	for text, want := range map[string]bool{
		"web-0.web.shop.svc.cluster.local:2380": true,
		"http://other.shop.svc":                 true,
		"http://db.shop.svc":                    false, // it stays where it is
		"db.shop:5432":                          false,
		"db.shop.svc,web-0.web.shop.svc":        true,
		"web.shop:80":                           true,
		"peers=web-0.web.shop,web-1.web.shop":   true,
		"a: 1\nhost: web.shop\nb: 2":            true,
		"web.shop":                              true,
		"*.shop.svc.cluster.local":              true,
		"web.shop-new.svc":                      false,
		"other.shop-new.svc":                    false,
		"web.shop.example.com":                  false,
		"myweb.shop":                            false,
		"shop":                                  false,
		"web.mall.svc":                          false,
	} {
		if got := of.isStale(text); got != want {
			t.Errorf("%q: %t, expected %t", text, got, want)
		}
	}
	if (names{ends: staleName([]string{""}, "shop")}).isStale(".shop") {
		t.Error("without a Service only full names count")
	}
}

func secret(namespace string, data map[string][]byte) client.Object {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keys"}, Data: data}
}

func service(namespace, name string, ports ...int32) client.Object {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": name}}}
	for _, p := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: p})
	}
	return s
}

// Whatever has a text may have a name in it.
func TestEveryTextOfThePodsIsReadForOldNames(t *testing.T) {
	const name, mounts = "web-0.web.shop.svc.cluster.local", "\nvolumes: [{name: c, configMap: {name: conf}}, {name: s, secret: {secretName: keys}}]"
	warn := func(at string) []string { return []string{"WARN..." + at + "...it names something in namespace shop"} }
	for where, c := range map[string]struct {
		e    checktest.Estate
		want []string
	}{
		"nothing":           {checktest.Estate{Spec: runs("image: i")}, nil},
		"a variable":        {checktest.Estate{Spec: runs("env: [{name: P, value: " + name + "}]")}, warn("StatefulSet mall/web...spec.template.spec.containers[web].env[P]")},
		"the new one":       {checktest.Estate{Spec: runs("env: [{name: NS, " + ownNamespace + "}, {name: P, value: web-0.web.$(NS).svc}]")}, nil},
		"by a variable":     {checktest.Estate{Spec: runs("env: [{name: NS, value: shop}, {name: P, value: web-0.web.$(NS).svc}]")}, warn("env[P]")},
		"an argument":       {checktest.Estate{Spec: runs("args: [run, --join=" + name + "]")}, warn("args[1]")},
		"a hook":            {checktest.Estate{Spec: runs("lifecycle: {preStop: {exec: {command: [sh, -c, curl " + name + "]}}}")}, warn("lifecycle.preStop.exec.command[2]")},
		"a probe":           {checktest.Estate{Spec: runs("livenessProbe: {httpGet: {port: 1, host: " + name + "}}")}, warn("livenessProbe.httpGet.host")},
		"a header":          {checktest.Estate{Spec: runs("startupProbe: {httpGet: {port: 1, httpHeaders: [{name: Host, value: " + name + "}]}}")}, warn("httpHeaders[Host]")},
		"an init container": {checktest.Estate{Spec: "initContainers: [{name: i, command: [ping, " + name + "]}]\n" + runs("image: i")}, warn("initContainers[i].command[1]")},
		"an alias":          {checktest.Estate{Spec: "hostAliases: [{ip: 10.0.0.1, hostnames: [" + name + "]}]\n" + runs("image: i")}, warn("hostAliases[10.0.0.1].hostnames[0]")},
		"a search domain":   {checktest.Estate{Spec: "dnsConfig: {searches: [web.shop.svc.cluster.local]}\n" + runs("image: i")}, warn("dnsConfig.searches[0]")},
		"a volume":          {checktest.Estate{Spec: runs("image: i") + "\nvolumes: [{name: disk, nfs: {server: nfs.shop.svc, path: /}}]"}, warn("volumes[disk].nfs.server")},
		"a ConfigMap":       {checktest.Estate{Here: []client.Object{conf("k", "a: "+name)}, Spec: runs("image: i") + mounts}, warn("ConfigMap shop/conf: key k")},
		"a Secret":          {checktest.Estate{Here: []client.Object{secret("shop", map[string][]byte{"k": []byte("p=" + name), "o": []byte("x")})}, Spec: runs("image: i") + mounts}, warn("Secret shop/keys: key k")},
		"one that is there": {checktest.Estate{Here: []client.Object{conf("k", "a: b")}, There: []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "conf"}, BinaryData: map[string][]byte{"k": []byte(name)}}}, Spec: runs("image: i") + mounts}, warn("ConfigMap mall/conf: key k")},
	} {
		t.Run(where, func(t *testing.T) { c.e.Finds(t, OldNames, c.want...) })
	}
	e := checktest.Estate{Here: []client.Object{secret("shop", map[string][]byte{"k": []byte("hunter2 " + name)})}, Spec: runs("image: i") + mounts}
	found, err := OldNames(t.Context(), e.Inspected(t))
	if err != nil || strings.Contains(found[0].String()+found[0].Remedy, "hunter2") {
		t.Errorf("%v: the content of a Secret is in %v", err, found)
	}
}

// A short name is looked up in the pod's own namespace.
func TestShortNamesOfServicesThatAreNotThereAreFound(t *testing.T) {
	db := service("shop", "orders-db", 5432)
	const warn, mounts = "WARN...Service orders-db of namespace shop by its short name, and namespace mall...", "\nvolumes: [{name: c, configMap: {name: conf}}]"
	for name, c := range map[string]struct {
		e    checktest.Estate
		want []string
	}{
		"a variable":                   {checktest.Estate{One: true, Here: []client.Object{db}, Spec: runs("env: [{name: DB, value: orders-db}]")}, []string{warn + "write orders-db.shop.svc...create service externalname orders-db --external-name orders-db.shop.svc.cluster.local"}},
		"in another cluster":           {checktest.Estate{Here: []client.Object{db}, Spec: runs("env: [{name: DB, value: orders-db}]")}, []string{warn + "make a Service orders-db"}},
		"an address":                   {checktest.Estate{One: true, Here: []client.Object{db}, Spec: runs("args: [\"postgres://u@orders-db:5432/x\"]")}, []string{warn}},
		"of a list":                    {checktest.Estate{One: true, Here: []client.Object{db}, Spec: runs("args: [\"--seeds=a,orders-db,c\"]")}, []string{warn}},
		"a word of a script":           {checktest.Estate{One: true, Here: []client.Object{db}, Spec: runs("command: [sh, -c, until nc -z orders-db 5432; do sleep 1; done]")}, []string{warn}},
		"with its namespace":           {checktest.Estate{One: true, Here: []client.Object{db}, Spec: runs("args: [\"orders-db.shop.svc:5432\"]")}, nil},
		"with it in another cluster":   {checktest.Estate{Here: []client.Object{db}, Spec: runs("args: [\"orders-db.shop:5432\"]")}, []string{"WARN...args[0]...it names something in namespace shop"}},
		"part of a word":               {checktest.Estate{One: true, Here: []client.Object{db}, Spec: runs("args: [my-orders-db, orders-db-2, /etc/orders-db/conf]")}, nil},
		"a file with an address":       {checktest.Estate{One: true, Here: []client.Object{db, conf("k", "x\ndb: orders-db:5432\n")}, Spec: runs("image: i") + mounts}, []string{"ConfigMap shop/conf: key k..." + warn}},
		"a file with a host":           {checktest.Estate{One: true, Here: []client.Object{db, conf("k", "db_host = orders-db\n")}, Spec: runs("image: i") + mounts}, []string{warn}},
		"a file with such a word":      {checktest.Estate{One: true, Here: []client.Object{db, conf("k", "# the orders-db of old\nname: orders-db\n")}, Spec: runs("image: i") + mounts}, nil},
		"one that both have":           {checktest.Estate{One: true, Here: []client.Object{db, service("mall", "orders-db")}, Spec: runs("env: [{name: DB, value: orders-db}]")}, nil},
		"a Secret of that name":        {checktest.Estate{One: true, Here: []client.Object{service("shop", "keys"), secret("shop", map[string][]byte{"k": nil})}, Spec: runs("env: [{name: P, valueFrom: {secretKeyRef: {name: keys, key: k}}}]")}, nil},
		"its variables":                {checktest.Estate{One: true, Here: []client.Object{db}, Spec: runs("env: [{name: DB, value: $(ORDERS_DB_SERVICE_HOST)}]")}, []string{"WARN...env[DB]...nothing in namespace mall defines $(ORDERS_DB_SERVICE_HOST)"}},
		"variables of a Service there": {checktest.Estate{One: true, Here: []client.Object{service("mall", "redis", 6379)}, Spec: runs("env: [{name: DB, value: $(REDIS_SERVICE_PORT)}]")}, nil},
		"no right to look":             {checktest.Estate{One: true, Forbids: "*v1.ServiceList", Spec: runs("env: [{name: DB, value: orders-db}]")}, []string{"WARN...Services of namespace shop...you may not look", "WARN...Services of namespace mall"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.e.Finds(t, OldNames, c.want...)
		})
	}
}

func certificate(t *testing.T, hosts ...string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: hosts}
	raw, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

// Members that check each other's names need those of both namespaces while they are on two sides.
func TestACertificateNeedsTheNamesOfBothNamespaces(t *testing.T) {
	const old, next = "*.web.shop.svc.cluster.local", "*.web.mall.svc.cluster.local"
	for name, c := range map[string]struct {
		here, there []string
		want        string
	}{
		"the old one":                {here: []string{old}, want: next},
		"both":                       {here: []string{old, next}},
		"another name":               {here: []string{"web.example.com"}},
		"its own over there":         {here: []string{old}, there: []string{next}, want: old},
		"its own for both":           {here: []string{old}, there: []string{next, old}},
		"its own for something else": {here: []string{old}, there: []string{"web.example.com"}, want: old + ", " + next},
	} {
		e := checktest.Estate{Spec: runs("image: i") + "\nvolumes: [{name: s, secret: {secretName: keys}}]", Here: []client.Object{secret("shop", map[string][]byte{"tls.crt": certificate(t, c.here...)})}}
		if c.there != nil {
			e.There = []client.Object{secret("mall", map[string][]byte{"tls.crt": certificate(t, c.there...)})}
		}
		var want []string
		if c.want != "" {
			want = []string{"WARN...Secret ...: key tls.crt...its certificate is not for " + c.want}
		}
		t.Run(name, func(t *testing.T) { e.Finds(t, OldNames, slices.Clone(want)...) })
	}
}

// A patch that removes a name removes the finding.
func TestOldNamesAreThoseOfThePodsAsTheyWillBe(t *testing.T) {
	e := checktest.Estate{Spec: runs("env: [{name: PEER, value: web-0.web.shop.svc}]")}
	e.Finds(t, OldNames, "it names something in namespace shop")
	e.Patch = "spec: {template: {spec: {containers: [{name: web, env: [{name: PEER, value: web-0.web.mall.svc}]}]}}}"
	e.Finds(t, OldNames)
}
