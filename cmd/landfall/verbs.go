package main

import "github.com/spf13/cobra"

// verbs makes the verbs, each of which has a file of its own.
func verbs() []func() *cobra.Command {
	return []func() *cobra.Command{
		newConfig,
		newCreds,
		newDemo,
		newDiff,
		newDoctor,
		newDrain,
		newEvacuate,
		newExplain,
		newExport,
		newImport,
		newInit,
		newKill,
		newMan,
		newPause,
		newUp,
		newQuery,
		newRebuild,
		newReplay,
		newState,
		newTail,
		newTest,
		newToken,
		newTop,
		newTrigger,
		newVerify,
		newVersion,
		newWhatif,
	}
}
