package network

import (
	"maps"
	"slices"
	"strings"
)

var curveTypes = []string{"linear", "exponential", "logarithmic", "sigmoid", "step", "power"}

// curveParameters are the ones each type uses, with their values when left out; NaN-free by construction.
var curveParameters = map[string]map[string]float64{
	"linear":      {},
	"exponential": {"k": 3},
	"logarithmic": {"k": 9},
	"sigmoid":     {"k": 8, "x0": 0.5},
	"step":        {"threshold": 0.5},
	"power":       {"p": 2},
}

func (c *Curve) parameters() map[string]**float64 {
	return map[string]**float64{"k": &c.K, "x0": &c.X0, "threshold": &c.Threshold, "p": &c.P}
}

func (c *Curve) complete() {
	slots := c.parameters()
	for name, value := range curveParameters[c.Type] {
		if *slots[name] == nil {
			*slots[name] = &value
		}
	}
}

// maxTerms is how many terms may have a weight: a decision must hold them.
const maxTerms = 16

// checkTerms refuses what no single key of the terms shows.
func (j *judge) checkTerms() {
	j.checkCurves()
	weighted, picks := 0, ""
	for _, label := range slices.Sorted(maps.Keys(j.LoadBalancer.Terms)) {
		t := j.LoadBalancer.Terms[label]
		if t.Weight == 0 {
			continue
		}
		if t.Input == "recentPicks" {
			if picks != "" {
				j.fault(CodeContradiction, "loadBalancer.terms."+label, "recentPicks is counted by %s already; allowed: one term of it with a weight", picks)
			}
			picks = label
		}
		if weighted++; weighted == maxTerms+1 {
			j.fault(CodeContradiction, "loadBalancer.terms", "more than %d terms have a weight; allowed: at most %d", maxTerms, maxTerms)
		}
	}
}

// checkCurves refuses parameters that the curve's type does not use: they would be believed to work.
func (j *judge) checkCurves() {
	for _, label := range slices.Sorted(maps.Keys(j.LoadBalancer.Terms)) {
		t := j.LoadBalancer.Terms[label]
		key := "loadBalancer.terms." + label
		if !slices.Contains(termInputs, t.Input) {
			j.fault(CodeOutOfBounds, key, "%q is not an input%s; allowed: %s, or any label with one of them as input", t.Input, Meant(Nearest(t.Input, termInputs)), strings.Join(termInputs, ", "))
		}
		if t.Normalize != nil && t.Normalize.Min >= t.Normalize.Max {
			j.fault(CodeContradiction, key+".normalize", "min %s is not below max %s; allowed: min < max", plain(t.Normalize.Min), plain(t.Normalize.Max))
		}
		used := curveParameters[t.Curve.Type]
		slots := t.Curve.parameters()
		for _, name := range slices.Sorted(maps.Keys(slots)) {
			if _, uses := used[name]; !uses && *slots[name] != nil {
				j.fault(CodeContradiction, key+".curve."+name, "a %s curve has no %s; allowed: %s", t.Curve.Type, name, parameterNames(used))
			}
		}
	}
}

func parameterNames(used map[string]float64) string {
	if len(used) == 0 {
		return "type alone"
	}
	return "type, " + strings.Join(slices.Sorted(maps.Keys(used)), ", ")
}
