"""`python -m isoscope` is the `isoscope` command."""

from isoscope.cli import main

if __name__ == "__main__":
    main()
