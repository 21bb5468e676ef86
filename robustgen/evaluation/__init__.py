"""From a data set to a score: models over its images, and the papers' tables of what they predict.

What they read and write is open to all: `robustgen.dataset`, `robustgen.predictions`, `robustgen.metrics`.

preprocessing   mean, std, size, layout of a model
models          a model of ONNX Runtime
predicting      `robustgen predict`
baselines       the errors that others are divided by
results         predictions to errors and flip probabilities
measures        the formulas of the papers, applied to models
intervals       bootstrap intervals and paired differences
published       values that others published
reporting       one report of several models
tables          its layouts: table, markdown, LaTeX, CSV, JSON
compact         its tables, fitted to a terminal
scoring         `robustgen score`
plotting        its chart
score_page      its page: calibration and gallery belong to it
unknown_classes `robustgen score --ood`
detection       `robustgen score-detection` and `evaluate --task detection`
segmentation    `robustgen score-segmentation`
cells           files for each corruption and severity
processes       one function over many files
"""
