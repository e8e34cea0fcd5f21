# A template: `make release` fills in the version, and an archive and its sum for each platform.
class Stsmigrate < Formula
  desc "Move a Kubernetes StatefulSet while its application runs"
  homepage "https://github.com/stsmigrate/stsmigrate"
  version "{{.Number}}"
  license "Apache-2.0"
{{range .Archives}}{{if .Brew}}
  {{.Brew}}
    url "https://github.com/stsmigrate/stsmigrate/releases/download/{{$.Version}}/{{.Name}}"
    sha256 "{{.SHA256}}"
  end
{{end}}{{end}}
  def install
    bin.install "stsmigrate", "kubectl_complete-stsmigrate"
    bin.install_symlink "stsmigrate" => "kubectl-stsmigrate"
    generate_completions_from_executable(bin/"stsmigrate", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/stsmigrate version")
  end
end
