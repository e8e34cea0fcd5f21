package program

import "regexp"

// registry is where the images of releases are (deploy/chart/values.yaml).
const registry = "ghcr.io/stsmigrate/"

var released = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[a-z]+\.\d+)?$`)

// PlaceholderImage returns the image of the program that waits in placeholders, of the same release as this program. A program
// that is not released has none.
func PlaceholderImage(version string) string {
	if !released.MatchString(version) {
		return ""
	}
	return registry + "placeholder:" + version
}
