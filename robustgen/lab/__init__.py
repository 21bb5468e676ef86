"""From images and sets to numbers and pages.

models      opening and running models
evaluation  from images to predictions
scores      from predictions to tables and pages
inspection  commands that look at sets
plans       plans of sets, as files
"""
