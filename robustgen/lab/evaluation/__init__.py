"""From images to predictions: running models on the images of a set, written or corrupted on the fly.

evaluating    `robustgen evaluate`
predicting    `robustgen predict`
rendering     the images of a set that is not written
predictions   files of predictions of any framework
store         the predictions of a run, image by image
detection     `robustgen evaluate --annotations FILE`
processes     one function over many files
"""
