"""The tables that come with isoscope, with their licences, and `make`, which makes them."""
