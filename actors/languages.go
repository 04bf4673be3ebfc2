package actors

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Languages are the texts that players see, in every language of the network: complete
// Messages by locale. The texts for everybody else stand at "".
type Languages map[string]Messages

// ShippedLanguages are the texts of the program itself, in its one language.
func ShippedLanguages() Languages { return Languages{"": ShippedMessages()} }

// NewLanguages completes each translation with the one it falls back to (de_at with de) and
// in the end with the texts for everybody. Locales are as ParseLocale gives them.
func NewLanguages(everybody Messages, translations map[string]Messages) Languages {
	out := Languages{"": everybody}
	for _, locale := range slices.SortedFunc(maps.Keys(translations), func(a, b string) int { return len(a) - len(b) }) {
		out[locale] = out.In(wider(locale)).With(translations[locale])
	}
	return out
}

// In gives the texts of a locale, in any spelling: of its own, else of the language it is
// a variant of, else those for everybody.
func (l Languages) In(locale string) Messages {
	for locale = canonical(locale); locale != ""; locale = wider(locale) {
		if m, ok := l[locale]; ok {
			return m
		}
	}
	return l[""]
}

// wider is the locale without its last part.
func wider(locale string) string { return locale[:max(strings.LastIndexByte(locale, '_'), 0)] }

func canonical(locale string) string {
	return strings.ReplaceAll(strings.ToLower(locale), "-", "_")
}

var localeForm = regexp.MustCompile(`^[a-z]{2,4}(_[a-z]{4})?(_([a-z]{2}|[0-9]{3}))?$`)

// ParseLocale reads the name of a language: pt-BR as in BCP 47, or pt_br as Minecraft has it.
// It gives the second form.
func ParseLocale(text string) (string, error) {
	locale := canonical(text)
	if !localeForm.MatchString(locale) {
		return "", errors.New("is no locale: want a language and perhaps a script and a country, such as de, pt-BR, pt_br or zh-Hant-TW")
	}
	return locale, nil
}
