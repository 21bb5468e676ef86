"""JSON Schemas of the models, for editors and for the pages of the docs."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema


class _Schema(GenerateJsonSchema):
    """Schema without types that only a function checks, which old releases of pydantic refuse to describe."""

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:
        return {}


def make_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of the YAML files that `model` describes.

    Lists may also be texts with commas, which the schema allows.
    """
    schema = model.model_json_schema(schema_generator=_Schema)
    for field in schema["properties"].values():
        choices = field.get("anyOf", [field])
        if any(each.get("type") == "array" for each in choices):
            listed = {
                key: field.pop(key) for key in [*field] if key in ("type", "items", "anyOf", "prefixItems")
            }
            field["anyOf"] = [*(listed.get("anyOf") or [listed]), {"type": "string"}, {"type": "number"}]
    # The extension for YAML of VS Code knows draft 7, and warns of later ones.
    return {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
