"""config: every key of a config, its value, and where the value comes from."""

import json

from robustgen.cli.app import command, echo, echo_text
from robustgen.cli.flags import takes
from robustgen.settings.config import Config
from robustgen.settings.inspecting import ShowingConfig


@command("config")
@takes(config=Config, options=ShowingConfig)
def config(config: Config, options: ShowingConfig) -> None:
    """Show every key of a config, its value and its origin.

    Takes the flags of make-c and make-p. --schema prints the JSON Schema of a config file, with which editors
    complete and check it.

    Examples
    --------
    robustgen config --dataset imagenet --source /data/imagenet/val
    robustgen config --schema
    """
    from robustgen.display.text import format_json
    from robustgen.settings.schema import make_schema

    if options.as_schema:
        echo_text(format_json(make_schema(Config)))
        return
    for key, value in config.model_dump(mode="json", by_alias=True).items():
        # JSON in one line is YAML, so the output is a config.
        echo(f"{key}: {json.dumps(value)}  # {config.origins.get(key, 'default')}")
