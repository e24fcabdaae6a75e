"""The OpenAPI file, made from the same declarations that check requests."""

from dataclasses import MISSING
from types import NoneType
from typing import Any, get_origin

from unordinal.settings import Setting, served
from unordinal.web.reading import ENVELOPE
from unordinal.web.requests import REQUESTS

PREFIX = "/api/v1"
ERRORS = {
    "400": "The body is not JSON, or not UTF-8.",
    "403": "The request comes from a page of another site.",
    "408": "The body did not arrive in time.",
    "413": "The body is too large.",
    "415": "The content type is not application/json.",
    "421": "The request is for a server of another name.",
    "422": "A field is missing, unknown or out of its range, the model cannot do this, or it would take too long.",
    "429": "The queue is full; try again in a few seconds.",
}


def openapi(version: str) -> dict[str, Any]:
    """Return the OpenAPI file as plain values."""
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    refused = {code: {"description": text, "content": error} for code, text in ERRORS.items()}
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {
        "Error": {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    }
    for path, (kind, answer) in REQUESTS.items():
        schema = schema_of(kind)
        schema["properties"] |= {s.name: {**type_schema(s), "description": s.text} for s in ENVELOPE}
        schemas[kind.__name__] = schema
        media = "text/event-stream" if path.endswith("stream") else "application/json"
        kind_of_answer = {"type": "string"} if path.endswith("stream") else {"type": "object"}
        paths[f"{PREFIX}/{path}"] = {
            "post": {
                "summary": (kind.__doc__ or "").strip(),
                "operationId": path.replace("/", "_"),
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}},
                },
                "responses": {
                    "200": {"description": answer, "content": {media: {"schema": kind_of_answer}}},
                    **refused,
                },
            }
        }
    for path, summary in (("models", "The models that are served, and what each can do."), ("limits", "The limits.")):
        found = {"description": summary, "content": {"application/json": {"schema": {"type": "object"}}}}
        paths[f"{PREFIX}/{path}"] = {"get": {"summary": summary, "operationId": path, "responses": {"200": found}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "unordinal", "version": version, "description": "Generative models of categorical data."},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def schema_of(kind: type) -> dict[str, Any]:
    """Return the fields of a request that a server accepts as JSON Schema."""
    properties, required = {}, []
    for setting in served(kind):
        schema = {**type_schema(setting), "description": setting.text}
        if setting.default is MISSING:
            required.append(setting.name)
        elif setting.default is not None:
            schema["default"] = setting.default
        properties[setting.name] = schema
    found: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "required": required} if required else found


NAMES = {int: "integer", float: "number", str: "string", bool: "boolean", NoneType: "null"}


def type_schema(setting: Setting) -> dict[str, Any]:
    """Return the type and the range of a field as JSON Schema."""
    span = setting.range(served=True)
    kinds = [NAMES[kind] for kind in setting.types if kind in NAMES]
    schema: dict[str, Any] = {}
    if setting.choices and len(kinds) - ("null" in kinds) == 0:
        has_null = "null" in kinds
        return {"type": ["string", "null"] if has_null else "string", "enum": [*setting.choices, *[None] * has_null]}
    if any(get_origin(kind) is list for kind in setting.types):
        row = {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": span.high}
        return {"type": "array", "items": row, "minItems": 1, "maxItems": span.high}
    is_text = "string" in kinds
    if setting.is_many:
        return {"type": "array", "items": {"type": kinds[0]}}
    names = ("minLength", "maxLength") if is_text else ("minimum", "maximum")
    limits = dict(zip(names, (span.low, span.high), strict=True))
    if not is_text:
        limits |= {"exclusiveMinimum": span.above, "exclusiveMaximum": span.below}
    schema |= {name: value for name, value in limits.items() if value is not None}
    if setting.choices:
        return {"anyOf": [{"type": kinds, **schema}, {"enum": list(setting.choices)}]}
    return {"type": kinds if len(kinds) > 1 else kinds[0], **schema}
