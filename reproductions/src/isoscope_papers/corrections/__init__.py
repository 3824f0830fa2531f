"""Whether to whiten: corrections tried on 28 tasks."""
