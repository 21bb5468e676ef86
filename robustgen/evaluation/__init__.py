"""From a data set to a score: running models on its images, and the papers' tables of the predictions.

Everything that these modules read and write is public: `robustgen.dataset`, `robustgen.predictions`,
`robustgen.metrics`.

preprocessing   mean, std, size, layout of a model
models          models of ONNX Runtime and PyTorch
predicting      `robustgen predict`
baselines       the errors that normalise those of others
results         predictions to errors and flip probabilities
measures        the formulas of the papers, applied to models
intervals       bootstrap intervals and paired differences
published       published values
reporting       one report of several models
tables          its layouts: table, markdown, LaTeX, CSV, JSON
compact         its tables, fitted to a terminal
scoring         `robustgen score`
plotting        its chart
score_page      its page, with calibration and gallery
unknown_classes `robustgen score --ood`
detection       `robustgen score-detection` and `evaluate --task detection`
segmentation    `robustgen score-segmentation`
cells           files for each corruption and severity
processes       one function over many files
"""
