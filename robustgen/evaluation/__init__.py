"""From a data set to a score: models over its images, and the papers' tables of what they predict.

What they read and write is open to all: `robustgen.datasets`, `robustgen.predictions`, `robustgen.metrics`.

preprocessing   mean, std, size, layout of a model
models          a model of ONNX Runtime
predicting      `robustgen predict`
baselines       the errors that others are divided by
results         predictions to errors and flip probabilities
reporting       one report of several models
tables          its layouts: table, markdown, LaTeX, CSV, JSON
scoring         `robustgen score`
plotting        its chart
"""
