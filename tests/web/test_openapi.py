"""The OpenAPI file describes what is served."""

import re

from unordinal.settings import served
from unordinal.tasks.asking import Sample
from unordinal.tasks.filling import Fill, FillMap
from unordinal.web.openapi import openapi, schema_of
from unordinal.web.requests import REQUESTS


def test_every_request_is_described() -> None:
    found = openapi("1.2.3")
    assert found["openapi"].startswith("3.1")
    assert found["info"]["version"] == "1.2.3"
    assert {f"/api/v1/{path}" for path in REQUESTS} | {"/api/v1/models", "/api/v1/limits"} == set(found["paths"])


def test_all_references_lead_somewhere() -> None:
    found = openapi("1")
    for name in re.findall(r"#/components/schemas/(\w+)", str(found)):
        assert name in found["components"]["schemas"]


def test_the_schema_says_what_is_checked() -> None:
    schema = schema_of(Sample)
    assert "required" not in schema
    assert schema["additionalProperties"] is False
    fields = schema["properties"]
    assert fields["num"] == {
        "type": "integer", "minimum": 1, "maximum": 16, "default": 4, "description": "How many samples.",
    }  # fmt: skip
    assert fields["sampler"]["enum"][-1] is None
    assert "entropy" in fields["sampler"]["enum"]
    assert fields["top_p"]["exclusiveMinimum"] == 0
    assert fields["top_p"]["maximum"] == 1
    whole, word = fields["steps"]["anyOf"]
    assert (whole["type"], whole["minimum"], whole["maximum"]) == (["integer", "null"], 1, 1000)
    assert word == {"enum": ["all"]}
    assert "known" not in fields
    assert "batch_size" not in fields
    assert schema_of(Fill)["required"] == ["text"]
    assert schema_of(Fill)["properties"]["gap"]["maxLength"] == 1
    rows = schema_of(FillMap)["properties"]["map"]
    assert rows["items"]["items"] == {"type": "integer"}
    assert rows["maxItems"] == 256


def test_every_served_field_is_described_with_the_model() -> None:
    found = openapi("1")["components"]["schemas"]
    for kind, _ in REQUESTS.values():
        fields = found[kind.__name__]["properties"]
        assert set(fields) == {setting.name for setting in served(kind)} | {"model", "block"}
        assert all(part["description"].endswith(".") for part in fields.values())
