package actors

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestCurveGolden: the values of the formulas, worked out by hand.
func TestCurveGolden(t *testing.T) {
	xs := []float64{0, 0.1, 0.25, 0.5, 0.6, 0.75, 0.9, 1}
	rows := []struct {
		curve Curve
		want  []float64
	}{
		{Curve{Shape: Exponential, K: 3}, []float64{0, .018331, .058526, .182426, .264580, .444721, .727238, 1}},
		{Curve{Shape: Exponential, K: 4}, []float64{0, .009176, .032059, .119203, .187006, .356086, .664169, 1}},
		{Curve{Shape: Exponential, K: 5}, []float64{0, .004401, .016894, .075858, .129470, .281665, .603861, 1}},
		{Curve{Shape: Logarithmic, K: 9}, []float64{0, .278754, .511883, .740363, .806180, .889302, .959041, 1}},
		{Curve{Shape: Sigmoid, K: 8, X0: .5}, []float64{0, .021970, .104994, .500000, .697063, .895006, .978030, 1}},
		{Curve{Shape: Sigmoid, K: 8, X0: .6}, []float64{0, .010312, .051604, .316859, .516272, .798137, .953807, 1}},
		{Curve{Shape: Sigmoid, K: 10, X0: .5}, []float64{0, .011447, .070104, .500000, .734193, .929896, .988553, 1}},
		{Curve{Shape: Power, P: 1.5}, []float64{0, .031623, .125000, .353553, .464758, .649519, .853815, 1}},
		{Curve{Shape: Power, P: 2}, []float64{0, .01, .0625, .25, .36, .5625, .81, 1}},
		{Curve{}, xs},
		{Curve{Shape: Step, Threshold: .6}, []float64{0, 0, 0, 0, 1, 1, 1, 1}},
	}
	for _, row := range rows {
		b := row.curve.bend()
		for i, x := range xs {
			if got := b.at(x); math.Abs(got-row.want[i]) > 5e-7 {
				t.Errorf("%+v at %v: %.7f, want %.6f", row.curve, x, got, row.want[i])
			}
		}
	}
}

// TestCurveLaws: whatever the parameters, a curve goes from 0 to 1, never falls, and takes
// anything for an x.
func TestCurveLaws(t *testing.T) {
	var curves []Curve
	for _, k := range []float64{minK, 1, 3, 8, maxK} {
		curves = append(curves, Curve{Shape: Exponential, K: k}, Curve{Shape: Logarithmic, K: k})
		for _, x0 := range []float64{0, 0.3, 0.5, 1} {
			curves = append(curves, Curve{Shape: Sigmoid, K: k, X0: x0})
		}
	}
	for _, p := range []float64{minP, 1, 2, maxP} {
		curves = append(curves, Curve{Shape: Power, P: p})
	}
	curves = append(curves, Curve{}, Curve{Shape: Step, Threshold: 0.5}, Curve{Shape: Step, Threshold: 1})
	for _, c := range curves {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
			b := c.bend()
			if lo, hi := b.at(0), b.at(1); math.Abs(lo) > 1e-12 || math.Abs(hi-1) > 1e-12 {
				t.Errorf("ends at %v and %v, want 0 and 1", lo, hi)
			}
			for i, last := 0, -1.0; i <= 100; i++ {
				y := b.at(float64(i) / 100)
				if y < last || y < 0 || y > 1 {
					t.Errorf("falls or leaves 0..1 at %d/100: %v after %v", i, y, last)
				}
				last = y
			}
			for x, want := range map[float64]float64{-5: b.at(0), math.Inf(-1): b.at(0), 7: b.at(1), math.Inf(1): b.at(1)} {
				if got := b.at(x); got != want {
					t.Errorf("at %v: %v, want %v", x, got, want)
				}
			}
			if got := b.at(math.NaN()); got != b.at(1) {
				t.Errorf("NaN counts %v, want the worst", got)
			}
		})
	}
	always := Curve{Shape: Step}.bend()
	if always.at(0) != 1 {
		t.Error("a step at 0 fires at 0: equal fires")
	}
}

// TestCurveShapes: exponential and power are cheap for long, logarithmic is dear at once,
// and the middle of a sigmoid is 0.5 only when it stands in the middle.
func TestCurveShapes(t *testing.T) {
	at := func(c Curve, x float64) float64 { b := c.bend(); return b.at(x) }
	if y := at(Curve{Shape: Exponential, K: 5}, 0.9); y > 0.61 {
		t.Errorf("exponential 5 at 0.9: %v; it is 0.604, whatever comments of old said", y)
	}
	for i := 1; i < 100; i++ {
		x := float64(i) / 100
		if e, l := at(Curve{Shape: Exponential, K: 3}, x), at(Curve{Shape: Logarithmic, K: 9}, x); !(e < x && x < l) {
			t.Errorf("at %v: exponential %v, logarithmic %v", x, e, l)
		}
	}
	if y := at(Curve{Shape: Sigmoid, K: 8, X0: .5}, .5); math.Abs(y-.5) > 1e-12 {
		t.Errorf("middle of a centred sigmoid: %v", y)
	}
	if y := at(Curve{Shape: Sigmoid, K: 8, X0: .6}, .6); math.Abs(y-.5) < 0.01 {
		t.Errorf("middle of a sigmoid at 0.6: %v, which is not 0.5 after stretching", y)
	}
}

// TestCurveRefusals name the parameter and what is allowed.
func TestCurveRefusals(t *testing.T) {
	for _, row := range []struct {
		curve Curve
		want  string
	}{
		{Curve{Shape: "cubic"}, `type: "cubic" is not a curve; allowed: linear, exponential, logarithmic, sigmoid, step, power`},
		{Curve{Shape: Exponential, K: 999}, "k: 999 is not allowed; allowed: 0.1..20"},
		{Curve{Shape: Exponential}, "k: 0 is not allowed"},
		{Curve{Shape: Logarithmic, K: math.NaN()}, "k: NaN is not allowed"},
		{Curve{Shape: Sigmoid, K: 8, X0: 1.01}, "x0: 1.01 is not allowed; allowed: 0..1"},
		{Curve{Shape: Sigmoid, K: 0.01, X0: 1}, "k: 0.01 is not allowed"},
		{Curve{Shape: Step, Threshold: -1}, "threshold: -1 is not allowed; allowed: 0..1"},
		{Curve{Shape: Power, P: math.Inf(1)}, "p: +Inf is not allowed; allowed: 0.1..8"},
	} {
		if err := row.curve.Validate(); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %s", row.curve, err, row.want)
		}
	}
}
