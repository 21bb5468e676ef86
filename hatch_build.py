"""Put compiled loops into the wheel, if scripts/build_wheel.py names them."""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LoopsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hook that adds the folder ROBUSTGEN_LOOPS, and tags the wheel ROBUSTGEN_TAG."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Change the content and the tag of the wheel."""
        if loops := os.environ.get("ROBUSTGEN_LOOPS"):
            place = f"robustgen/pixels/imaging/kernels/compiled/{Path(loops).name}"
            build_data["force_include"][loops] = place
            build_data["tag"], build_data["pure_python"] = os.environ["ROBUSTGEN_TAG"], False
