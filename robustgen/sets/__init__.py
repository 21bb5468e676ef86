"""From a source to the files of a set.

sources      a class and a row for each `source_kind`
ingredients  what corruptions need beside the images
formats      one module per format, which writes a set and reads it back
dataset      plans, records, running and finishing
executors    who runs the units
"""
