"""The OpenAPI file describes what is served."""

import re

from unordinal.web.openapi import openapi
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
