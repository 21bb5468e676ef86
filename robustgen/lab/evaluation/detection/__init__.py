"""Detectors on corrupted images: their detections as COCO result files.

reading   annotations and results, checked before any C code reads them
images    the corrupted images, by the recipes of make-c
detecting `robustgen evaluate --annotations FILE`
"""
