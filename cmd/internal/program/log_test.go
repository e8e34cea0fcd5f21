package program

import (
	"testing"

	"k8s.io/klog/v2"
)

// The flag sets the log level. It stops below the level at which bodies are logged.
func TestLogsAsMuchAsTheFlagSays(t *testing.T) {
	for flag, most := range map[int]int{0: 0, 1: 1, 6: 6, 9: mostVerbose, -1: 0} {
		if err := Log(flag); err != nil {
			t.Fatal(err)
		}
		for level := range 11 {
			if on := klog.Background().V(level).Enabled(); on != (level <= most) {
				t.Errorf("-v %d: level %d is logged: %t", flag, level, on)
			}
		}
		if on := klog.V(klog.Level(most + 1)).Enabled(); on {
			t.Errorf("-v %d: clients wrap requests for level %d", flag, most+1)
		}
	}
}
