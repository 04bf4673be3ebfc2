//go:build unix

package edge

import (
	"strings"
	"testing"
)

func TestFileLimitText(t *testing.T) {
	if got := fileLimitText(2000, 12256); got != "" {
		t.Errorf("enough is not enough: %s", got)
	}
	if got := fileLimitText(2000, 1024); !strings.Contains(got, "12256") || !strings.Contains(got, "1024") {
		t.Errorf("warning %q", got)
	}
	if fileLimitWarning(1<<40) == "" {
		t.Error("a trillion players fit")
	}
}
