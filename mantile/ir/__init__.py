"""Architecture to modules and tensors in execution order, with shapes as expressions over the architecture's facts."""
