"""One request to an OpenAI-compatible server, and when the pieces of its answer came.

While an answer streams only times and lines are kept; what they say is read afterwards. Answers are counted
and forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from mantile.library.errors import InputError

if TYPE_CHECKING:
    import httpx

_DATA, _DONE = "data:", "[DONE]"


@dataclass(frozen=True)
class Answer:
    """How a request went. Times are seconds of `time.perf_counter`.

    Args:
        sent: when its first byte left; `due` when it should have been sent.
        pieces: when each piece of the answer came.
        prompt_tokens, output_tokens: as the server counts them; None where it does not say.
        failure: why it failed, in a word such as http_500 or timeout; None if it did not.
    """

    due: float
    sent: float
    pieces: tuple[float, ...] = ()
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    failure: str | None = None

    @property
    def ttft(self) -> float:
        """Time to the first piece, s."""
        return self.pieces[0] - self.sent

    @property
    def e2e(self) -> float:
        """Time to the last piece, s."""
        return self.pieces[-1] - self.sent

    @property
    def tokens(self) -> int:
        """Output tokens; the number of pieces where the server does not count."""
        return self.output_tokens or len(self.pieces)

    @property
    def tpot(self) -> float | None:
        """Time per output token after the first, s; None of a single token, and of several in one piece."""
        several = self.tokens > 1 and len(self.pieces) > 1
        return (self.pieces[-1] - self.pieces[0]) / (self.tokens - 1) if several else None


@dataclass(frozen=True)
class Form:
    """How a server is asked.

    Args:
        path: of the endpoint.
        model: as the server calls it.
        chat: whether the prompt is a message of a chat.
        keeps_on: whether it is told to go on beyond an end of text (`ignore_eos`).
        counts: whether it is told to count tokens in streams.
    """

    path: str
    model: str
    chat: bool
    keeps_on: bool = True
    counts: bool = True

    def body(self, prompt: str, tokens: int, stream: bool = True) -> bytes:
        """A request as it is sent."""
        asked: dict[str, Any] = {"model": self.model, "max_tokens": tokens, "temperature": 0.0}
        asked |= {"messages": [{"role": "user", "content": prompt}]} if self.chat else {"prompt": prompt}
        if stream:
            asked["stream"] = True
            if self.counts:
                asked["stream_options"] = {"include_usage": True}
        if self.keeps_on:
            asked["ignore_eos"] = True
        return json.dumps(asked).encode()


async def ask(client: httpx.AsyncClient, path: str, body: bytes, due: float | None = None) -> Answer:
    """Send a request and wait for its whole answer. No failure of the server raises.

    Args:
        due: when it should be sent, by `time.perf_counter`; now if None.
    """
    import httpx

    lines: list[tuple[float, str]] = []
    sent = perf_counter()
    due = sent if due is None else due

    async def traced(event: str, _: Any) -> None:
        """Time begins when the first byte leaves: what the client does before is told apart."""
        nonlocal sent
        if event == "http11.send_request_headers.started":
            sent = perf_counter()

    try:
        async with client.stream("POST", path, content=body, extensions={"trace": traced}) as response:
            if response.status_code != httpx.codes.OK:
                return Answer(due, sent, failure=f"http_{response.status_code}")
            async for line in response.aiter_lines():
                lines.append((perf_counter(), line))
    except httpx.HTTPError as error:
        return Answer(due, sent, failure=_failure(error))
    return _answer(due, sent, lines)


def _answer(due: float, sent: float, lines: list[tuple[float, str]]) -> Answer:
    """What the lines of a stream say."""
    pieces: list[float] = []
    usage: Mapping[str, Any] = {}
    ended = False
    for moment, line in lines:
        if not line.startswith(_DATA):
            continue
        text = line.removeprefix(_DATA).strip()
        if text == _DONE:
            ended = True
            continue
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            return Answer(due, sent, failure="not_json")
        if not isinstance(event, dict) or event.get("error"):
            return Answer(due, sent, failure="error_in_stream")
        usage = _fields(event.get("usage")) or usage
        choices = event.get("choices")
        for choice in map(_fields, choices if isinstance(choices, list) else ()):
            ended |= choice.get("finish_reason") is not None
            if _has_token(choice):
                pieces.append(moment)
    if not ended:
        return Answer(due, sent, failure="broken_off")
    if not pieces:
        return Answer(due, sent, failure="empty")
    prompt, output = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    return Answer(due, sent, tuple(pieces), prompt, output)


def _fields(told: Any) -> Mapping[str, Any]:
    """A mapping as it is; nothing of what should be one and is none."""
    return told if isinstance(told, dict) else {}


def _count(told: Any) -> int | None:
    """A number of tokens as a server tells it; None of what is none."""
    return told if isinstance(told, int) and not isinstance(told, bool) and told > 0 else None


def _has_token(choice: Mapping[str, Any]) -> bool:
    """Whether a piece of a stream is of a token.

    Of a completion each piece is, but for an empty one that only ends it: a token may be a part of a
    character, which is no text yet. A chat begins with a piece that names the role.
    """
    if not choice:
        return False
    if choice.get("delta") is None:
        return bool(choice.get("text")) or choice.get("finish_reason") is None
    delta = _fields(choice["delta"])
    return any(delta.get(name) for name in ("content", "reasoning_content", "reasoning", "tool_calls"))


class NoAnswer(Exception):
    """A request that failed, for a reason such as http_400 or timeout."""


REFUSED = ("http_400", "http_413", "http_422")
"""Failures by which a server says that it does not take what it was asked."""


async def count(client: httpx.AsyncClient, form: Form, prompt: str) -> int:
    """How many tokens the server says a prompt has.

    Raises:
        NoAnswer: if the request fails.
        InputError: if the server does not say.
    """
    import httpx

    body = form.body(prompt, 1, stream=False)
    try:
        response = await client.post(form.path, content=body)
    except httpx.HTTPError as error:
        raise NoAnswer(_failure(error)) from error
    if response.status_code != httpx.codes.OK:
        raise NoAnswer(f"http_{response.status_code}")
    try:
        told = _count(_fields(_fields(response.json()).get("usage")).get("prompt_tokens"))
    except (ValueError, RecursionError):
        told = None
    if told is None:
        raise InputError(
            f"{form.path}: the answer has no usage.prompt_tokens; expected a server that counts tokens"
        )
    return told


def _failure(error: httpx.HTTPError) -> str:
    """Why a request has failed, in a word."""
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return "timeout"
    return "no_connection" if isinstance(error, httpx.ConnectError) else "broken_off"


_CLOSE, _TRIES = 0.01, 8


async def settle(client: httpx.AsyncClient, form: Form, words: Any, tokens: int) -> int:
    """How many words make a prompt of so many tokens, by the server's own count, to 1 % or a token.

    Args:
        words: what texts are drawn from.
        tokens: of the prompt.

    Raises:
        NoAnswer: if a request fails, as of a prompt that the server does not take.
        InputError: if the server does not count, or a single word is longer.
    """
    number = max(1, tokens // 4)
    seen: dict[int, int] = {}
    for _ in range(_TRIES):
        if number in seen:
            break
        seen[number] = await count(client, form, words.text("length", number))
        if abs(seen[number] - tokens) <= max(1, _CLOSE * tokens):
            return number
        fewest, most = min(seen), max(seen)
        slope = (seen[most] - seen[fewest]) / (most - fewest) if most > fewest else 0
        slope = slope if slope > 0 else seen[number] / number
        number = max(1, number + round((tokens - seen[number]) / slope))
    nearest = min(seen, key=lambda number: abs(seen[number] - tokens))
    if seen[nearest] > max(2 * tokens, tokens + 50):
        raise InputError(
            f"prompts of {tokens} tokens: the shortest has {seen[nearest]} with what the server adds; "
            "expected longer ones"
        )
    return nearest
