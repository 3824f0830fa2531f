"""Xiao, Long and Al Moubayed 2023: the layers of sentence encoders."""
