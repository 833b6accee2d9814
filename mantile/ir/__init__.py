"""Architecture to modules and tensors in execution order; shapes are expressions over its facts."""
