"""Four papers on the shape of embedding spaces: their setups, our runs of them, and every claim.

corpora         labelled texts and words, as the papers classify them
verdicts        ours beside published, row by row
claims          a claim held, did not hold, or it depends
pages           the comparison as Markdown and as one HTML page
classifiers  theory     Mickus, Grönroos and Attieh 2024
contrastive  dynamics   Xiao, Long and Al Moubayed 2023
manifolds               Cai, Huang, Bian and Church 2021
istar                   Rudman and Eickhoff 2024
corrections             should I whiten?
commands                `isoscope reproduce`
"""
