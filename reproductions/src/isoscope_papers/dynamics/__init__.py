"""Xiao, Long and Al Moubayed 2023: contrastive training followed update by update."""
