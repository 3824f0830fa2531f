"""Which metrics of geometry predict how well a space serves a task: our own study."""
