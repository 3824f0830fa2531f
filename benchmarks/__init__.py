"""`make bench`: what isoscope costs, measured beside its peers in one run."""
