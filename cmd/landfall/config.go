package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/cmd/landfall/network"
)

// defaultConfig is the file that verbs look for when none is named.
const defaultConfig = "network.yml"

func newConfig() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Check network.yml, show it with all defaults, compare it, push it to all hosts; print what a nats-server needs",
		Long: `Reads network.yml. Only push, and show and diff with --network, open a store.

Exit status: see each verb.`,
		Args: knownVerb,
		RunE: needsVerb,
	}
	c.AddCommand(newConfigCheck(), newConfigShow(), newConfigDiff(), newConfigPush(), newConfigNATS())
	return c
}

// upToOneFile wants the name of the file or nothing.
func upToOneFile(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageError("want one file, got %d arguments; see `%s --help`", len(args), c.CommandPath())
	}
	return nil
}

func fileOf(args []string) string {
	if len(args) == 0 {
		return defaultConfig
	}
	return args[0]
}

func newConfigShow() *cobra.Command {
	var id string
	var asJSON bool
	var live networkFlags
	c := &cobra.Command{
		Use:   "show [FILE]",
		Short: "Show the configuration as it holds: every key, with where its value comes from",
		Long: `Shows every key of FILE (network.yml when left out) as it holds, with the line of the file or
"default". With --id, of the hosts only that one. No secret is shown: the file only says where
they are.

With --network it shows the keys that can be pushed, as the file has them and as they are in force
on the network, who pushed that and when, and of every host what its last heartbeat says it goes
by. The file names the store and the secret.

Exit status: 0 shown, 1 the file or the store cannot be used.`,
		Example: `  landfall config show network.yml`,
		Args:    upToOneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if live.network {
				v, err := lookAtNetwork(c.Context(), fileOf(args), live.store)
				if err != nil {
					return err
				}
				return v.print(c.OutOrStdout(), asJSON)
			}
			n, err := network.Load(fileOf(args))
			if err != nil {
				return err
			}
			rows, err := settingRows(n, fileOf(args), id)
			if err != nil {
				return err
			}
			if asJSON {
				return encodeAll(c, rows)
			}
			_, err = fmt.Fprint(c.OutOrStdout(), settingTable(rows))
			return err
		},
	}
	c.Flags().StringVar(&id, "id", "", "show this host alone")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line; with --network one in all")
	live.add(c)
	return c
}

// settingRow is one key as `config show` prints it.
type settingRow struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Source string `json:"source"` // "file" or "default"
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Live   bool   `json:"live"` // a running host takes on a change
}

// settingRows are the keys of a network, or as they concern one host of it.
func settingRows(n *network.Network, file, id string) ([]settingRow, error) {
	if id != "" {
		var e *network.Error
		if _, err := n.Identity(id, func(string) string { return "" }); errors.As(err, &e) && e.Code != network.CodeStoreAlone {
			return nil, err
		}
	}
	var rows []settingRow
	for _, s := range n.Settings() {
		if strings.HasPrefix(s.Key, "hosts.") && id != "" && !strings.HasPrefix(s.Key, "hosts."+id+".") {
			continue
		}
		row := settingRow{Key: s.Key, Value: s.Value, Source: "default", Live: s.Live}
		if s.Line > 0 {
			row.Source, row.File, row.Line = "file", file, s.Line
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func settingTable(rows []settingRow) string {
	wide := [2]int{len("KEY"), len("VALUE")}
	for _, r := range rows {
		wide[0], wide[1] = max(wide[0], len(r.Key)), max(wide[1], len(valueText(r.Value)))
	}
	var b strings.Builder
	line := func(key, value, from string) {
		fmt.Fprintf(&b, "%-*s  %-*s  %s\n", wide[0], key, wide[1], value, from)
	}
	line("KEY", "VALUE", "FROM")
	for _, r := range rows {
		from := r.Source
		if r.Line > 0 {
			from = fmt.Sprintf("%s:%d", r.File, r.Line)
		}
		line(r.Key, valueText(r.Value), from)
	}
	return b.String()
}

var plainWord = regexp.MustCompile(`^[^\s"',{}\[\]#]+$`)

// valueText is a value as one would write it into the file.
func valueText(value any) string {
	if text, ok := value.(string); ok && plainWord.MatchString(text) {
		return printable(text)
	}
	out, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value) // infinite: the table's bounds allow none
	}
	return printable(strings.ReplaceAll(string(out), ",", ", "))
}

// encodeAll prints one JSON object a line.
func encodeAll[T any](c *cobra.Command, rows []T) error {
	out := json.NewEncoder(c.OutOrStdout())
	for _, r := range rows {
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
