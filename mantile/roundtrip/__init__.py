"""What was edited, what differs? Import, compare, audit."""
