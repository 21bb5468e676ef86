"""From predictions to the papers' tables and pages.

scoring           `robustgen score`
results           predictions to errors and flip probabilities
baselines         the errors that normalise those of others
measures          the formulas of the papers, applied to models
intervals         bootstrap intervals and paired differences
family_means      the means of other families
published         published values
reporting         one report of several models
layouts           its layouts: table, markdown, LaTeX, CSV, JSON
gate              conditions that it must not fulfil
plotting          its chart
score_page        its page, with calibration and gallery
unknown_classes   `robustgen score-ood`
detection         `robustgen score-detection`
segmentation      `robustgen score-segmentation`
result_grid       files for each corruption and severity
"""
