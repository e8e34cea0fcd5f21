package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"os"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// sbom lists the modules in a program, and Go itself, from the build information that the linker wrote into
// it. It has neither time nor serial number, so the same program always has the same SBOM.
func sbom(path, version string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	program := component(cdx.ComponentTypeApplication, info.Main.Path, version)
	program.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(content))}}
	program.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	parts := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))}
	needs := []string{parts[0].BOMRef}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := component(cdx.ComponentTypeLibrary, m.Path, m.Version)
		parts, needs = append(parts, c), append(needs, c.BOMRef)
	}
	bill := cdx.NewBOM()
	bill.Metadata = &cdx.Metadata{Component: &program}
	bill.Components = &parts
	bill.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &needs}}
	var b bytes.Buffer
	err = cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bill)
	return b.Bytes(), err
}

func component(kind cdx.ComponentType, module, version string) cdx.Component {
	purl := "pkg:golang/" + module + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cdx.Component{Type: kind, BOMRef: purl, Name: module, Version: version, PackageURL: purl}
}
