package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/cmd/landfall/network"
)

// hint completes one thing on the command line of a verb.
type hint struct {
	verb  string // path below landfall
	flag  string // "": the first argument
	words func(c *cobra.Command) []string
}

// hints are what the shell completes beside verbs, flags and files (`landfall completion bash`).
func hints() []hint {
	return []hint{
		{"config check", "id", hostsOfFile},
		{"drain", "", hostsOfFile},
		{"evacuate", "", backendsOfFile},
		{"pause server", "", backendsOfFile},
		{"tail", "bucket", func(*cobra.Command) []string { return append(strings.Split(bucketNames(), ", "), "all") }},
		{"tail", "outcome", outcomeNames},
		{"tail", "server", hostsOfFile},
		{"tail", "type", func(*cobra.Command) []string { return append(knownTypes(), typeSecurity) }},
		{"up", "id", hostsOfFile},
	}
}

// addHints gives them to the verbs.
func addHints(root *cobra.Command, hints []hint) error {
	for _, h := range hints {
		c, _, err := root.Find(strings.Fields(h.verb))
		if err != nil {
			return err
		}
		if h.flag == "" {
			c.ValidArgsFunction = h.complete
			continue
		}
		if err := c.RegisterFlagCompletionFunc(h.flag, h.complete); err != nil {
			return err
		}
	}
	return nil
}

func (h hint) complete(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	var fitting []string
	if h.flag != "" || len(args) == 0 {
		for _, word := range h.words(c) {
			if strings.HasPrefix(word, begun) {
				fitting = append(fitting, word)
			}
		}
	}
	return fitting, cobra.ShellCompDirectiveNoFileComp
}

func outcomeNames(*cobra.Command) []string {
	var names []string
	for _, phase := range outcomes {
		names = append(names, strings.ToLower(string(phase)))
	}
	return names
}

// hostsOfFile are the hosts of the network.yml that the command line names so far, or that lies here. One that cannot
// be read completes nothing: what is wrong with it is for the verb to say.
func hostsOfFile(c *cobra.Command) []string {
	n := fileSoFar(c)
	if n == nil {
		return nil
	}
	return n.HostIDs()
}

func backendsOfFile(c *cobra.Command) []string {
	n := fileSoFar(c)
	if n == nil {
		return nil
	}
	return slices.DeleteFunc(n.HostIDs(), func(id string) bool { return n.Hosts[id].Advertise == "" })
}

func fileSoFar(c *cobra.Command) *network.Network {
	path := defaultConfig
	switch f := c.Flags().Lookup("config"); {
	case f != nil && f.Value.String() != "":
		path = f.Value.String()
	case f == nil && c.Flags().NArg() > 0: // config check FILE
		path = c.Flags().Arg(0)
	}
	n, err := network.Load(path)
	if err != nil {
		return nil
	}
	return n
}
