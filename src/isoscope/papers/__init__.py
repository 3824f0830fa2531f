"""The papers: their setups with what they published, our runs of them, and the comparison.

classifier_setups       declarations: Mickus, Grönroos and Attieh 2024
classifiers             running a setup and comparing it
classifier_figures      the figures in the paper's arrangement
contrastive_setups      declarations: Xiao, Long and Al Moubayed 2023
contrastive             a model measured layer by layer, by the protocol and by clean definitions
contrastive_comparison  ours beside published, two models beside each other
contrastive_figures     the figures in the paper's arrangement
contrastive_report      sections, text, JSON
dynamics_setups         its trainings: temperatures, batch sizes, poolings, where each begins
dynamics                running one, keeping and reading it
dynamics_readings       what is read of a model before and after
dynamics_bounds         equations 12 to 17 in closed form
dynamics_claims         its claims, each with the bound it is tested by
dynamics_figures        trajectories in the paper's arrangement
dynamics_report         sections of its page, text, JSON
manifold_setups         declarations: Cai, Huang, Bian and Church 2021
manifold_layers         what the paper measures of one layer
manifolds               running a setup, keeping and reading what was found
manifold_claims         its claims, each with the bound it is tested by
manifold_figures        the figures in the paper's arrangement
manifold_report         sections, text, JSON
istar_setups            declarations: Rudman and Eickhoff 2024
istar_populations       populations of vectors whose isotropy is known
istar_estimators        isotropy estimated from mini-batches of them (figure 4)
istar_sweep             fine-tuning with every strength of the penalty, run by run
istar_comparison        runs beside each other: in pairs by seed, along the strengths
istar_claims            its claims, each with the bound it is tested by
istar_figures           the figures in the paper's arrangement
istar_tables            the estimators as tables
istar_report            sections, text, JSON
claims                  a claim held, did not hold, or it depends
verdicts                ours beside published, row by row
pages                   the comparison as Markdown and as one HTML page
"""
