package pods

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWhereAnImageComesFrom(t *testing.T) {
	for ref, want := range map[string][2]string{
		"web":                            {"docker.io", "library/web:latest"},
		"web:1":                          {"docker.io", "library/web:1"},
		"shop/web":                       {"docker.io", "shop/web:latest"},
		"localhost/web":                  {"localhost", "web:latest"},
		"west.example/shop/web:1":        {"west.example", "shop/web:1"},
		"west:5000/web":                  {"west:5000", "web:latest"},
		"west.example/web@sha256:0123":   {"west.example", "web@sha256:0123"},
		"docker.io/library/web:1":        {"docker.io", "library/web:1"},
		"west.example/web:1@sha256:0123": {"west.example", "web:1@sha256:0123"},
	} {
		if registry, rest := located(ref); registry != want[0] || rest != want[1] {
			t.Errorf("%s is %s of %s, expected %s of %s", ref, rest, registry, want[1], want[0])
		}
	}
}

func TestPullSecretsAreReadForTheirRegistriesOnly(t *testing.T) {
	tests := map[string]struct {
		key, config string
		want        []string
	}{
		"today's form":     {corev1.DockerConfigJsonKey, `{"auths":{"west.example":{"auth":"canary"},"https://index.docker.io/v1/":{}}}`, []string{"docker.io", "west.example"}},
		"yesterday's form": {corev1.DockerConfigKey, `{"http://west.example/v2":{"auth":"canary"}}`, []string{"west.example"}},
		"no such Secret":   {"password", "canary", nil},
		"not JSON":         {corev1.DockerConfigJsonKey, "canary", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := hostsOf(&corev1.Secret{Data: map[string][]byte{tt.key: []byte(tt.config)}})
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, expected %q", got, tt.want)
			}
		})
	}
}

func TestWhichPullSecretIsForARegistry(t *testing.T) {
	secrets := []pullSecret{{"east", []string{"east.example"}}, {"wild", []string{"*.west.example", "west:5000"}}}
	for registry, want := range map[string]string{
		"east.example":     "pull secret east has an entry for it",
		"a.west.example":   "pull secret wild has an entry for it",
		"west:5000":        "pull secret wild has an entry for it",
		"west.example":     "none of the pull secrets (east, wild) has an entry for it",
		"a.b.west.example": "none of the pull secrets (east, wild) has an entry for it",
	} {
		if got := entryFor(registry, secrets); got != want {
			t.Errorf("%s: %s, expected %s", registry, got, want)
		}
	}
	if got := entryFor("east.example", nil); got != "the pods have no pull secret" {
		t.Error(got)
	}
}

func TestNodesThatHaveTheImagesNeedNoRegistry(t *testing.T) {
	full, empty := map[string]bool{"docker.io/library/web:latest": true}, map[string]bool{}
	web := images{{"web", corev1.PullIfNotPresent}}
	tests := map[string]struct {
		nodes      nodeImages
		list       images
		words      string
		everywhere bool
	}{
		"all":            {nodeImages{byNode: []map[string]bool{full, full}}, web, "2 of 2 nodes list them already", true},
		"some":           {nodeImages{byNode: []map[string]bool{full, empty}}, web, "1 of 2 nodes list them already", false},
		"pulled anyway":  {nodeImages{byNode: []map[string]bool{full}}, images{{"web", corev1.PullAlways}}, "1 of 1 nodes list them already", false},
		"no nodes":       {nodeImages{}, web, "0 of 0 nodes list them already", false},
		"nobody may see": {nodeImages{hidden: true}, web, "its nodes could not be looked at", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if words, everywhere := tt.nodes.have(tt.list); words != tt.words || everywhere != tt.everywhere {
				t.Errorf("got %q and %v", words, everywhere)
			}
		})
	}
}
