"""The papers: their setups with what they published, our runs of them, and the comparison.

classifier_setups       declarations: Mickus, Grönroos and Attieh 2024
classifiers             running a setup and comparing it
classifier_figures      the figures in the paper's arrangement
verdicts                ours beside published, row by row
pages                   the comparison as Markdown and as one HTML page
"""
