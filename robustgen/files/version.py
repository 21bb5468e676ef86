"""The release of robustgen, which plans, records and caches name."""

__version__ = "1.0.0rc1"
