"""The release of robustgen, which plans, records and caches name."""

__version__ = "0.1.0"
