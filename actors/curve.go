package actors

import (
	"fmt"
	"math"
)

// Shape is the form of a curve.
type Shape string

// Shapes, each rising from 0 at 0 to 1 at 1.
const (
	Linear      Shape = "linear"      // x
	Exponential Shape = "exponential" // slow, then steep: (e^(Kx)-1) / (e^K-1)
	Logarithmic Shape = "logarithmic" // steep, then slow: ln(1+Kx) / ln(1+K)
	Sigmoid     Shape = "sigmoid"     // steep around X0, stretched so that it ends at 0 and 1
	Step        Shape = "step"        // 0 below Threshold, 1 from there on
	Power       Shape = "power"       // x^P
)

// Curve says how much a measure between 0 (best) and 1 (worst) counts, again between 0 and
// 1. It never falls. A shape looks at its own parameters only. The zero Curve is linear.
type Curve struct {
	Shape     Shape   `json:"type"`
	K         float64 `json:"k,omitempty"`         // steepness: exponential, logarithmic, sigmoid
	X0        float64 `json:"x0,omitempty"`        // middle: sigmoid
	Threshold float64 `json:"threshold,omitempty"` // step
	P         float64 `json:"p,omitempty"`         // exponent: power
}

// Bounds of the parameters.
const (
	minK, maxK = 0.1, 20
	minP, maxP = 0.1, 8
)

// Validate refuses an unknown shape and parameters out of bounds. Nothing is clamped: a
// number that is silently another number is believed to work.
func (c Curve) Validate() error {
	switch c.Shape {
	case "", Linear:
		return nil
	case Exponential, Logarithmic:
		return within("k", c.K, minK, maxK)
	case Sigmoid:
		if err := within("k", c.K, minK, maxK); err != nil {
			return err
		}
		return within("x0", c.X0, 0, 1)
	case Step:
		return within("threshold", c.Threshold, 0, 1)
	case Power:
		return within("p", c.P, minP, maxP)
	}
	return fmt.Errorf("type: %q is not a curve; allowed: linear, exponential, logarithmic, sigmoid, step, power", c.Shape)
}

// within refuses what is no number between two others; NaN is none.
func within(key string, x, low, high float64) error {
	if x >= low && x <= high {
		return nil
	}
	return fmt.Errorf("%s: %v is not allowed; allowed: %v..%v", key, x, low, high)
}

// own drops the parameters that the shape does not look at.
func (c Curve) own() Curve {
	switch c.Shape {
	case Exponential, Logarithmic:
		return Curve{Shape: c.Shape, K: c.K}
	case Sigmoid:
		return Curve{Shape: c.Shape, K: c.K, X0: c.X0}
	case Step:
		return Curve{Shape: c.Shape, Threshold: c.Threshold}
	case Power:
		return Curve{Shape: c.Shape, P: c.P}
	case Linear:
	}
	return Curve{Shape: Linear}
}

// bend is a curve with what does not depend on x worked out.
type bend struct {
	Curve

	low, scale float64
}

func (c Curve) bend() bend {
	b := bend{Curve: c.own()}
	switch c.Shape {
	case Exponential:
		b.scale = 1 / math.Expm1(c.K)
	case Logarithmic:
		b.scale = 1 / math.Log1p(c.K)
	case Sigmoid:
		b.low = logistic(c.K * -c.X0)
		b.scale = 1 / (logistic(c.K*(1-c.X0)) - b.low)
	case Linear, Step, Power:
	}
	return b
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// at gives the curve's value. x below 0 counts as 0, x above 1 and NaN count as 1.
func (b *bend) at(x float64) float64 {
	switch {
	case x <= 0:
		x = 0
	case !(x <= 1): // NaN too
		x = 1
	}
	y := x
	switch b.Shape {
	case Exponential:
		y = math.Expm1(b.K*x) * b.scale
	case Logarithmic:
		y = math.Log1p(b.K*x) * b.scale
	case Sigmoid:
		y = (logistic(b.K*(x-b.X0)) - b.low) * b.scale
	case Step:
		y = 0
		if x >= b.Threshold {
			y = 1
		}
	case Power:
		y = math.Pow(x, b.P)
	case Linear:
	}
	return min(max(y, 0), 1)
}
