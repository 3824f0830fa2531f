"""Four papers on the shape of embedding spaces: their setups, our runs of them, and every claim.

claims/  catalogue      everything the papers say, do or show; with what was found
verdict                 the five verdicts, and how one is reached
study                   a study: setups, run, findings, page
rows  words             ours beside published; numbers in words
page  runs              Markdown and HTML; a run as a file
figures                 a figure of a page: its caption, and how it is drawn
command  options        `isoscope reproduce`, and what several studies take
glance                  every claim on one page
corpora                 labelled texts and words, as the papers classify them
classifiers  theory     Mickus, Grönroos and Attieh 2024
contrastive  dynamics   Xiao, Long and Al Moubayed 2023
manifolds               Cai, Huang, Bian and Church 2021
istar                   Rudman and Eickhoff 2024
corrections             should I whiten?
"""
