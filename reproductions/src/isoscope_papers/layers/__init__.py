"""Every layer of four models, along depth and over training: our own study."""
