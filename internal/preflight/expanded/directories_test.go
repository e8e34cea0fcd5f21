package expanded

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
)

const disk = "spec: {csi: {driver: d, volumeHandle: h}}"

// of is a namespace's pod with the variables that most have.
func of(more string) string {
	return "containers: [{name: web, " + more + ", env: [{name: NS, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}, {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: BASE, value: x/$(NS)}]}]"
}

func mount(how string) string {
	return of("volumeMounts: [{name: data, mountPath: /data, " + how + "}]")
}

func TestAnotherDirectoryOfTheVolumeIsRefused(t *testing.T) {
	const fail, at = "FAIL...StatefulSet mall/web...", "spec.template.spec.containers[web]."
	for name, c := range map[string]struct {
		e    checktest.Estate
		want []string
	}{
		"the namespace":         {checktest.Estate{Spec: mount("subPathExpr: $(NS)/$(POD)")}, []string{fail + at + "volumeMounts[/data].subPathExpr...web-0 finds directory \"shop/web-0\" of volume data...would start in \"mall/web-0\"...subPathExpr: \"shop/$(POD)\""}},
		"by another variable":   {checktest.Estate{Spec: mount("subPathExpr: $(BASE)")}, []string{"x/shop...x/mall...subPathExpr: \"x/shop\""}},
		"the pod alone":         {checktest.Estate{Spec: mount("subPathExpr: $(POD)")}, nil},
		"an escaped reference":  {checktest.Estate{Spec: mount("subPathExpr: $$(NS)")}, nil},
		"a fixed directory":     {checktest.Estate{Spec: mount("subPath: shop")}, nil},
		"no volume of the set":  {checktest.Estate{Spec: of("volumeMounts: [{name: tmp, mountPath: /data, subPathExpr: $(NS)}]") + "\nvolumes: [{name: tmp, emptyDir: {}}]"}, nil},
		"of an init container":  {checktest.Estate{Spec: "initContainers: [{name: prepare, env: [{name: NS, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}], volumeMounts: [{name: data, mountPath: /d, subPathExpr: $(NS)}]}]\ncontainers: [{name: web}]"}, []string{"spec.template.spec.initContainers[prepare].volumeMounts[/d]...{initContainers: [{name: prepare"}},
		"ordinals start empty":  {checktest.Estate{Empty: true, Spec: mount("subPathExpr: $(NS)")}, nil},
		"the old one by patch":  {checktest.Estate{Spec: mount("subPathExpr: $(NS)/$(POD)"), Patch: "spec: {template: {spec: {containers: [{name: web, volumeMounts: [{name: data, mountPath: /data, subPathExpr: \"shop/$(POD)\"}]}]}}}"}, nil},
		"another one by patch":  {checktest.Estate{Spec: mount("subPath: a"), Patch: "spec: {template: {spec: {containers: [{name: web, volumeMounts: [{name: data, mountPath: /data, subPath: b}]}]}}}"}, []string{"\"a\"...\"b\"...subPathExpr: \"a\""}},
		"the name of the node":  {checktest.Estate{One: true, Spec: strings.Replace(mount("subPathExpr: $(NODE)/x"), "env: [", "env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}, ", 1)}, []string{"WARN...has the name of the node in it ((spec.nodeName)/x)"}},
		"of another cluster":    {checktest.Estate{Spec: strings.Replace(mount("subPathExpr: $(NODE)/x"), "env: [", "env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}, ", 1)}, []string{"FAIL...has the name of the node in it"}},
		"told by a variable":    {checktest.Estate{Spec: strings.Replace(mount("readOnly: false"), "env: [", "env: [{name: PGDATA, value: /data/$(NS)/pg}, ", 1)}, nil},
		"told after the others": {checktest.Estate{Spec: strings.Replace(mount("readOnly: false"), "{name: BASE, value: x/$(NS)}", "{name: PGDATA, value: /data/$(NS)/$(POD)}", 1)}, []string{at + "env[PGDATA]...\"/data/shop/web-0\"...\"/data/mall/web-0\"...value: \"/data/shop/$(POD)\""}},
		"told by an argument":   {checktest.Estate{Spec: of("args: [run, --dir=/data/$(NS)], volumeMounts: [{name: data, mountPath: /data}]")}, []string{at + "args[1]...\"/data/shop\"...path: /spec/template/spec/containers/0/args/1, value: \"--dir=/data/shop\""}},
		"told with a default":   {checktest.Estate{Spec: of("command: [sh, -c, 'exec run -D \"/data/${NS:-none}\"'], volumeMounts: [{name: data, mountPath: /data}]")}, []string{at + "command[2]...\"/data/shop\"...value: \"exec run -D \\\"/data/shop\\\"\""}},
		"told by a script":      {checktest.Estate{Spec: of("command: [sh, -c, \"mkdir -p /data/${NS}/log && exec run\"], volumeMounts: [{name: data, mountPath: /data}]")}, []string{at + "command[2]...\"/data/shop/log\"...value: \"mkdir -p /data/shop/log && exec run\""}},
		"told of another path":  {checktest.Estate{Spec: of("args: [--run=/run/$(NS), --peers=/datas/$(NS)], volumeMounts: [{name: data, mountPath: /data}]")}, nil},
		"of a shared claim":     {checktest.Estate{Shared: disk, Spec: of("volumeMounts: [{name: m, mountPath: /m, subPathExpr: $(NS)}]") + "\nvolumes: [{name: m, persistentVolumeClaim: {claimName: media}}]"}, []string{"of volume m"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.e.Volumes = []string{disk, disk}
			c.e.Finds(t, SameDirectory, c.want...)
		})
	}
}

// The patch that a finding prints is the remedy: with it there is no finding.
func TestThePatchOfAFindingKeepsTheDirectory(t *testing.T) {
	for _, spec := range []string{
		mount("subPathExpr: $(BASE)/$(POD)"),
		strings.Replace(mount("readOnly: false"), "{name: BASE, value: x/$(NS)}", "{name: PGDATA, value: /data/$(NS)/$(POD)}", 1),
		of("args: [run, \"--dir=/data/$(NS)/$(POD)\"], volumeMounts: [{name: data, mountPath: /data}]"),
		of("command: [sh, -c, \"exec run -D /data/$NS/$POD\"], volumeMounts: [{name: data, mountPath: /data}]"),
	} {
		e := checktest.Estate{Volumes: []string{disk}, Spec: spec}
		found, err := SameDirectory(t.Context(), e.Inspected(t))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		_, e.Patch, _ = strings.Cut(found[0].Remedy, "\n")
		e.Finds(t, SameDirectory)
	}
}

// RabbitMQ and others of Erlang keep their data in a directory with the name of the node.
func TestAMemberKeepsTheNameThatItsDataHas(t *testing.T) {
	node := func(env string) string {
		return "containers: [{name: web, volumeMounts: [{name: data, mountPath: /data}], env: [{name: NS, " + ownNamespace + "}, {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, " + env + "]}]"
	}
	for name, c := range map[string]struct {
		e    checktest.Estate
		want []string
	}{
		"RabbitMQ":            {checktest.Estate{Spec: node("{name: RABBITMQ_NODENAME, value: rabbit@$(POD).peers.$(NS).svc}")}, []string{"FAIL...env[RABBITMQ_NODENAME]...\"rabbit@web-0.peers.shop.svc\" on the source and would be \"rabbit@web-0.peers.mall.svc\"...value: \"rabbit@$(POD).peers.shop.svc\""}},
		"by its short name":   {checktest.Estate{Spec: node("{name: RABBITMQ_NODENAME, value: rabbit@$(POD)}")}, nil},
		"by its long name":    {checktest.Estate{Spec: node("{name: RABBITMQ_USE_LONGNAME, value: 'true'}")}, []string{"FAIL...env[RABBITMQ_USE_LONGNAME]...name: RABBITMQ_NODENAME"}},
		"CouchDB":             {checktest.Estate{Spec: node("{name: NODENAME, value: $(POD).peers.$(NS).svc}")}, []string{"FAIL...env[NODENAME]"}},
		"another of Erlang":   {checktest.Estate{Spec: node("{name: ME, value: app@$(POD).peers.$(NS).svc}")}, []string{"FAIL...env[ME]"}},
		"another address":     {checktest.Estate{Spec: node("{name: ME, value: http://a@$(POD).peers.$(NS).svc}")}, nil},
		"told by an argument": {checktest.Estate{Spec: "containers: [{name: web, volumeMounts: [{name: data, mountPath: /data}], args: [-name, a@x.$(NS)], env: [{name: NS, " + ownNamespace + "}]}]"}, []string{"FAIL...args[1]...value: \"a@x.shop\""}},
		"without a volume":    {checktest.Estate{Spec: "containers: [{name: web, env: [{name: NS, " + ownNamespace + "}, {name: ME, value: a@x.$(NS)}]}]"}, nil},
		"a script of a ConfigMap": {
			checktest.Estate{Here: []client.Object{conf("run.sh", "exec run --dir /data/$NS/x\n")}, Spec: node("{name: A, value: b}") + "\nvolumes: [{name: c, configMap: {name: conf}}]"},
			[]string{"FAIL...ConfigMap shop/conf: key run.sh...\"/data/shop/x\"...\"/data/mall/x\""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.e.Volumes = []string{disk}
			c.e.Finds(t, SameDirectory, c.want...)
		})
	}
}

// A ConfigMap that the destination has already, made by another program, may say another directory.
func TestADirectoryOfAConfigMapIsThatOfItsOwnSide(t *testing.T) {
	conf := func(namespace, dir string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "conf"}, Data: map[string]string{"DIR": dir}}
	}
	e := checktest.Estate{
		Volumes: []string{disk}, Here: []client.Object{conf("shop", "/data/a")}, There: []client.Object{conf("mall", "/data/b")},
		Spec: "containers: [{name: web, env: [{name: DIR, valueFrom: {configMapKeyRef: {name: conf, key: DIR}}}], volumeMounts: [{name: data, mountPath: /data}]}]",
	}
	e.Finds(t, SameDirectory, "FAIL...env[DIR]...\"/data/a\"...\"/data/b\"...value: \"/data/a\", valueFrom: null")
	e.There = nil
	e.Finds(t, SameDirectory)
}
