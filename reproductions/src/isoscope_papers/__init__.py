"""Reproductions of four papers on the geometry of embedding spaces, and three studies of our own.

claims/  catalogue      the claims of the papers, with our findings
verdict                 the five verdicts, and how they are decided
study                   a study: setups, run, findings, page
rows  words             our values beside the published ones; formats of numbers
page  runs              pages in Markdown and HTML; saved runs
figures                 a figure of a page: its caption, and how to draw it
command  options        `isoscope reproduce`, and shared options
glance                  the page of all claims
corpora                 labelled texts and words
classifiers  theory     Mickus, Grönroos and Attieh 2024
contrastive  dynamics   Xiao, Long and Al Moubayed 2023
manifolds               Cai, Huang, Bian and Church 2021
istar                   Rudman and Eickhoff 2024
corrections             should I whiten?
layers                  every layer of four models
collapse                where a classifier takes IsoScore, predicted before training
"""
