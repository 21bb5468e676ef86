"""From a config to finished files: config, recipes, plan, runner, library versions."""
