"""The collapse law: where a classifier takes IsoScore, predicted before training: our own study."""
