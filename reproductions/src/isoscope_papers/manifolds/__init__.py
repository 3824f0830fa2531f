"""Cai, Huang, Bian and Church 2021: clusters and manifolds in contextual spaces."""
