"""The engine: what has vectors (source), what is to be taken of them (plan), and the passes (run).

source               Source: what everything that has vectors can say and do
measure              `measure`: a plan, its run, the readings
run                  the statistics of a source, part by part
readings             Readings: the table of what comes of it
ring                 rows held by several processes (GPUs), passed round
"""
