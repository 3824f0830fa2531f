"""The papers: their setups with what they published, our runs of them, and the comparison.

classifier_setups       declarations: Mickus, Grönroos and Attieh 2024
classifiers             running a setup and comparing it
classifier_figures      the figures in the paper's arrangement
contrastive_setups      declarations: Xiao, Long and Al Moubayed 2023
contrastive             a model measured layer by layer, by the protocol and by clean definitions
contrastive_comparison  ours beside published, two models beside each other
contrastive_figures     the figures in the paper's arrangement
contrastive_report      sections, text, JSON
verdicts                ours beside published, row by row
pages                   the comparison as Markdown and as one HTML page
"""
