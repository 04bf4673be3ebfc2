package main

import (
	"context"
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/actors/api"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// programID is the login of programs that ask over NATS; who each of them is its token says.
const programID events.HostID = "api"

// programLogin derives the login of programs from the network's secret.
func programLogin(secret []byte) embedded.User {
	name, password := streams.Login(secret, streams.RoleProgram, programID)
	return embedded.User{Role: streams.RoleProgram, ID: programID, Name: name, Password: password}
}

// semantic is a version as NATS services must have it.
var semantic = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)

// serveNATS lets programs ask over NATS what they can ask over HTTP, until ctx ends.
func (p *programs) serveNATS(ctx context.Context, st *streams.Store, host events.HostID) error {
	m := streams.Micro{
		Name: "landfall", Version: "0.0.0", Description: "Moves players between the servers of a game network",
		Metadata: map[string]string{"host": string(host), "build": buildInfo().Version},
	}
	if v := buildInfo().Version; semantic.MatchString(v) {
		m.Version = v
	}
	for _, op := range p.service.Operations() {
		m.Endpoints = append(m.Endpoints, endpoint(op))
	}
	return st.ServeMicro(ctx, m)
}

func endpoint(op api.Operation) streams.MicroEndpoint {
	return streams.MicroEndpoint{
		Name: op.Name, Metadata: map[string]string{"scope": string(op.Scope), "summary": op.Summary},
		Call: func(ctx context.Context, header func(string) string, body []byte) ([]byte, int, string) {
			out, p := op.Call(ctx, header("Authorization"), body)
			if p != nil {
				return p.JSON(), p.Status, p.Code
			}
			return out, 0, ""
		},
	}
}

func newTokenLogin() *cobra.Command {
	var config string
	c := &cobra.Command{
		Use:   "login",
		Short: "Print the NATS login with which programs reach the API without HTTP",
		Long: `Prints user and password of the login that lets a NATS client ask the micro service "landfall",
and nothing else: it needs a token beside it, as HTTP does. They follow from the network's
secret. docs/api.md tells the subjects.

Exit status: 0 printed, 1 the file or the secret cannot be used.`,
		Args: exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			n, err := network.Load(config)
			if err != nil {
				return err
			}
			if !n.HasAPI() {
				return n.At(network.CodeContradiction, "hosts", "no host has api, so nobody answers programs; allowed: api on one of them")
			}
			secret, _, err := n.Secret(os.Getenv)
			if err != nil {
				return err
			}
			u := programLogin(secret)
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s %s\n", u.Name, u.Password)
			return err
		},
	}
	c.Flags().StringVar(&config, "config", "network.yml", "the network's file")
	return c
}
