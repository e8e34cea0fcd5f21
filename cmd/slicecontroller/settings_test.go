package main

import (
	"flag"
	"testing"

	"github.com/stsmigrate/stsmigrate/cmd/internal/flagtest"
)

var update = flag.Bool("update", false, "write the section of docs/settings.md anew") //nolint:gochecknoglobals // a flag of the test

func TestThePageHasTheSettings(t *testing.T) {
	env := append(flagtest.Common(),
		flagtest.Variable{Names: []string{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"}, Default: "no proxy", Meaning: "the proxy for requests to the API server, and the hosts that need none"},
	)
	flagtest.Compare(t, flagtest.Program{Name: "slicecontroller", Flags: command().Flags(), Env: env}, *update)
}
