"""Which deployment should I run? Plans, objectives, limits, ranking and reasons."""

from mantile.optimize.objective import Limit, Objective, limit, read_limit, read_objective
from mantile.optimize.optimize import Candidate, Optimum, optimize

__all__ = ["Candidate", "Limit", "Objective", "Optimum", "limit", "optimize", "read_limit", "read_objective"]
