"""Errors as answers: problem details of RFC 9457, each with the field and the reason code where there are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from mantile.library.documents import json_data
from mantile.library.errors import InputError
from mantile.server.errors import Limited as Limited
from mantile.server.errors import Refused

MEDIA_TYPE = "application/problem+json"
_TITLES = {
    400: "The request is not readable",
    403: "Not allowed here",
    404: "There is no such page",
    405: "Not answered by this method",
    408: "The request did not come",
    413: "The request is too large",
    415: "Not a type of content that is read here",
    422: "Something that was handed in is wrong",
    429: "Too many requests",
    500: "The server failed",
    503: "The server is busy",
    504: "It took too long",
}
_FIELD = re.compile(r"\bfield (?P<a>[\w.]+):|^scenario: (?P<b>[a-z]\w*)(?::| is missing)")


class FieldProblem(BaseModel):
    """What is wrong with one field."""

    field: str | None = Field(description="Dotted path in the request; null where it is none of one field.")
    detail: str


class Problem(BaseModel):
    """Problem details."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    field: str | None = Field(default=None, description="The first field that is wrong.")
    code: str | None = Field(default=None, description="Reason code, as `mantile list checks` explains it.")
    errors: list[FieldProblem] = []


RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {
        "description": _TITLES[status],
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status in (400, 403, 408, 413, 415, 422, 429, 500, 503, 504)
}
"""What every endpoint may answer in place of what is asked."""


class Json(JSONResponse):
    """JSON as `mantile ... --json` prints it: null for what is no number; never an error of encoding."""

    def render(self, content: Any) -> bytes:
        """The bytes of an answer."""
        return json_bytes(content)


def json_bytes(content: Any) -> bytes:
    """Plain objects as JSON in UTF-8."""
    text = json.dumps(json_data(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def problem(
    status: int,
    detail: str,
    field: str | None = None,
    code: str | None = None,
    errors: list[dict[str, Any]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Json:
    """An answer that says what is wrong."""
    return Json(
        {
            "type": "about:blank",
            "title": _TITLES.get(status, "The request was not answered"),
            "status": status,
            "detail": detail,
            "field": field,
            "code": code,
            "errors": errors or [],
        },
        status,
        headers=headers,
        media_type=MEDIA_TYPE,
    )


_LISTED = re.compile(r"`mantile list models` shows those that we ship(?:; a path or a hub id is taken too)?")


def of_input(error: InputError) -> Json:
    """The answer to an input that is wrong: a line of its message is a problem each."""
    said = _LISTED.sub("GET /models lists those that there are", str(error))
    if isinstance(error, Refused):
        return problem(422, said, error.field, error.code)
    errors = [
        {"field": (found["a"] or found["b"]) if (found := _FIELD.search(line)) else None, "detail": line}
        for line in said.splitlines()
    ]
    return problem(422, said, errors[0]["field"] if errors else None, errors=errors)


def handle(app: FastAPI) -> None:
    """Let the application answer errors as problems."""

    @app.exception_handler(InputError)
    async def _input(request: Request, error: InputError) -> Json:
        return of_input(error)

    @app.exception_handler(Limited)
    async def _limited(request: Request, error: Limited) -> Json:
        headers = {} if error.after is None else {"Retry-After": str(error.after)}
        return problem(error.status, str(error), headers=headers)

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> Json:
        unreadable = next((item for item in error.errors() if item["type"] == "json_invalid"), None)
        if unreadable is not None:  # its place is where in the text, no field
            place, why = unreadable["loc"][-1], unreadable.get("ctx", {}).get("error", "")
            return problem(400, f"body: not valid JSON at character {place}: {str(why)[:200]}", None)
        errors = [
            {
                "field": ".".join(f"{part}"[:60] for part in item["loc"][1:]) or None,
                "detail": str(item["msg"])[:300],
            }
            for item in error.errors()[:20]
        ]
        said = "; ".join(f"{one['field'] or 'body'}: {one['detail']}" for one in errors)
        return problem(422, said, errors[0]["field"] if errors else None, errors=errors)

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Json:
        return problem(error.status_code, str(error.detail), headers=error.headers)

    @app.exception_handler(Exception)
    async def _fault(request: Request, error: Exception) -> Json:
        return problem(500, "an error of the program, which its log tells")
