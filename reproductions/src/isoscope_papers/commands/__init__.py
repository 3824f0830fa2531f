"""The commands of `isoscope reproduce`."""
