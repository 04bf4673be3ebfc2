package actors

import (
	"maps"
	"slices"
	"testing"
)

// TestLanguagesFallBack: a text that a locale lacks is that of its language, else the one for
// everybody; a locale nobody has written is read as its language.
func TestLanguagesFallBack(t *testing.T) {
	l := NewLanguages(Messages{"a": "everybody", "b": "everybody", "c": "everybody"}, map[string]Messages{
		"de_at": {"a": "österreichisch"}, "de": {"a": "deutsch", "b": "deutsch"}, "zh_hant_tw": {"a": "臺灣"}, "pt_br": {"a": "brasileiro"},
	})
	for locale, want := range map[string][3]string{
		"":           {"everybody", "everybody", "everybody"},
		"de":         {"deutsch", "deutsch", "everybody"},
		"de_at":      {"österreichisch", "deutsch", "everybody"},
		"de-AT":      {"österreichisch", "deutsch", "everybody"},
		"DE_CH":      {"deutsch", "deutsch", "everybody"},
		"zh-Hant-TW": {"臺灣", "everybody", "everybody"},
		"zh_hant":    {"everybody", "everybody", "everybody"},
		"pt_br":      {"brasileiro", "everybody", "everybody"},
		"pt":         {"everybody", "everybody", "everybody"},
		"fr_fr":      {"everybody", "everybody", "everybody"},
		"_":          {"everybody", "everybody", "everybody"},
		"../etc":     {"everybody", "everybody", "everybody"},
	} {
		m := l.In(locale)
		if got := [3]string{m["a"], m["b"], m["c"]}; got != want {
			t.Errorf("%q reads %q, want %q", locale, got, want)
		}
	}
	if got := slices.Sorted(maps.Keys(l)); !slices.Equal(got, []string{"", "de", "de_at", "pt_br", "zh_hant_tw"}) {
		t.Errorf("locales %q", got)
	}
}

func TestParseLocale(t *testing.T) {
	for text, want := range map[string]string{
		"de": "de", "pt-BR": "pt_br", "pt_br": "pt_br", "zh-Hant-TW": "zh_hant_tw", "es-419": "es_419", "lol_us": "lol_us", "enws": "enws",
		"": "", "d": "", "deutsch": "", "de_": "", "de_at_x": "", "de at": "", "pt.br": "", "zh_tw_hant": "", "ö": "",
	} {
		got, err := ParseLocale(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
}
