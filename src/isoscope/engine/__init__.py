"""The engine: how a source is measured, and the table of what comes of it."""
