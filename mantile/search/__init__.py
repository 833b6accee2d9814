"""Which deployment should I run? Plans, objectives, limits, ranking and reasons."""
