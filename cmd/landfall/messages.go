package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/cmd/landfall/network"
)

// readMessages gives the texts for players: the shipped ones, the operator's over them, and
// the translations that lie beside those as messages.<locale>.yml. No file need exist. The
// error holds every fault of every file.
func readMessages(path string) (actors.Languages, error) {
	shipped := actors.ShippedMessages()
	if path == "" {
		return actors.Languages{"": shipped}, nil
	}
	own, err := readTexts(path, shipped)
	faults := []error{err}
	others, err := translations(path)
	faults = append(faults, err)
	texts := map[string]actors.Messages{}
	for _, locale := range slices.Sorted(maps.Keys(others)) {
		texts[locale], err = readTexts(others[locale], shipped)
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return actors.NewLanguages(shipped.With(own), texts), nil
}

// translations are the files beside a file of messages that name a locale.
func translations(path string) (map[string]string, error) {
	ext := filepath.Ext(path)
	stem := strings.TrimSuffix(filepath.Base(path), ext) + "."
	beside, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &network.Error{File: path, Code: network.CodeMissing, Msg: "its directory cannot be read: " + err.Error()}
	}
	out := map[string]string{}
	var faults []error
	for _, entry := range beside {
		middle, found := strings.CutPrefix(entry.Name(), stem)
		name, ends := strings.CutSuffix(middle, ext)
		if !found || !ends || entry.IsDir() {
			continue
		}
		file := filepath.Join(filepath.Dir(path), entry.Name())
		locale, err := actors.ParseLocale(name)
		if err != nil {
			faults = append(faults, &network.Error{File: file, Code: network.CodeOutOfBounds, Msg: fmt.Sprintf("%q %v", name, err)})
			continue
		}
		if other := out[locale]; other != "" {
			faults = append(faults, &network.Error{File: file, Code: network.CodeDuplicateKey, Msg: "is the same locale as " + filepath.Base(other) + "; allowed: one of them"})
		}
		out[locale] = file
	}
	return out, errors.Join(faults...)
}

// readTexts reads one file of messages, and refuses what no message has.
func readTexts(path string, shipped actors.Messages) (actors.Messages, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &network.Error{File: path, Code: network.CodeMissing, Msg: "cannot be read: " + err.Error()}
	}
	entries, err := network.Flat(path, "want a flat list of key: text", data)
	if err != nil {
		return nil, err
	}
	var faults []error
	out := actors.Messages{}
	for _, e := range entries {
		out[e.Key] = e.Text
		if code, fault := faultOf(e, shipped); code != "" {
			faults = append(faults, &network.Error{File: path, Line: e.Line, Key: e.Key, Code: code, Msg: fault})
		}
	}
	return out, errors.Join(faults...)
}

// braced finds what a text names in braces, and braces that are not closed.
var braced = regexp.MustCompile(`\{[^{}]*\}?|\}`)

// faultOf is what is wrong with one text; the code is empty when nothing is.
func faultOf(e network.Entry, shipped actors.Messages) (code, fault string) {
	if _, known := shipped[e.Key]; !known {
		return network.CodeUnknownKey, "no message has this key" + network.Meant(network.Nearest(e.Key, slices.Collect(maps.Keys(shipped)))) + "; docs/messages.md lists all"
	}
	allowed := actors.Placeholders(e.Key)
	for _, found := range braced.FindAllString(e.Text, -1) {
		name := strings.Trim(found, "{}")
		if found == "{"+name+"}" && slices.Contains(allowed, name) {
			continue
		}
		what := "this message may name nothing in braces"
		if len(allowed) > 0 {
			what = "allowed in braces: " + strings.Join(allowed, ", ")
		}
		return network.CodeOutOfBounds, found + " does not come with it" + network.Meant(network.Nearest(name, allowed)) + "; " + what
	}
	return "", ""
}
