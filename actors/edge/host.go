package edge

import "strings"

// CleanHost returns the host of a handshake as it is looked up: without what mod
// loaders put after a zero byte and TCPShield after ///, without the trailing dots
// of an SRV target, in lower case. What is forwarded stays as it came.
func CleanHost(host string) string {
	host, _, _ = strings.Cut(host, "\x00")
	host, _, _ = strings.Cut(host, "///")
	return strings.ToLower(strings.TrimRight(host, "."))
}

// TokenLabel returns the first label of a cleaned host when it is a reservation
// token, r-<32 hex>-<n>, directly below domain; "" otherwise. An empty domain
// accepts any.
func TokenLabel(host, domain string) string {
	label, parent, found := strings.Cut(host, ".")
	if !found || domain != "" && parent != domain {
		return ""
	}
	hex, n, found := strings.Cut(strings.TrimPrefix(label, "r-"), "-")
	if !strings.HasPrefix(label, "r-") || !found || len(hex) != 32 || !isNumber(n) {
		return ""
	}
	if strings.Trim(hex, "0123456789abcdef") != "" {
		return ""
	}
	return label
}

// isNumber holds for 1 to 999 without leading zero: the attempts of a transfer.
func isNumber(s string) bool {
	return len(s) >= 1 && len(s) <= 3 && s[0] != '0' && strings.Trim(s, "0123456789") == ""
}
