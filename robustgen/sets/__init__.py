"""From a source to the files of a set.

sources      one class and one row per kind of source
ingredients  what corruptions need beside the images
formats      one module per format, which writes a set and reads it back
dataset      plans, records, running and finishing
executors    who runs the units
"""
