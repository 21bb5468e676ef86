"""Detectors on corrupted images: P, mPC and rPC of Michaelis et al. 2019 from COCO result files.

reading   annotations and results, checked before any C code reads them
images    the corrupted images, by the recipes of make-c
detectors detectors of torchvision, and user functions
running   `robustgen evaluate --task detection`
coco      COCO's evaluation by pycocotools, and bootstrap samples of it
scoring   `robustgen score-detection`
"""
