"""A scenario through the graph: numbers, sweeps, sensitivity, explanations, plans."""
