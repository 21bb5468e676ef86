"""Scores of detectors: P, mPC and rPC of Michaelis et al. 2019 from COCO result files.

coco      COCO's evaluation by pycocotools, and bootstrap samples of it
scoring   `robustgen score-detection`
"""
