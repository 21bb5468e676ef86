"""Subtype robustness: unseen species of bird are birds too (ICLR 2019 paper, appendix G).

`wordnet` reads the hierarchy, `splitting` separates seen from unseen subtypes and writes the lists.
"""
