"""Commands that look at sets.

verify             against checksums, manifest, records and source; `verify_contents` compares files
                   one by one; writes the description in Croissant
preview            sheets and animations of one image, and its page with sliders
compare            whether two sets are equivalent
strengths          `robustgen calibrate`; `matching` constants for another size
calibrate_text     its results as text and config
report             the page about a finished set; `report_pictures` its pictures and curves
conformance        checks of formats, sources and executors
"""
