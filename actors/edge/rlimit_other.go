//go:build !unix

package edge

// fileLimitWarning: this system has no limit to compare with.
func fileLimitWarning(int) string { return "" }
