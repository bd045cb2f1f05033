"""Metrics and health of a run over HTTP, for Prometheus and for whoever restarts processes.

/metrics  the metrics in the text format of Prometheus
/healthz  200 while no part of the run hangs, else 503 with the reasons: a restart helps
/readyz   200 while every part works, the store too, else 503 with the reasons
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
Sentences = Callable[[], Sequence[str]]


def health_application(metrics: Callable[[], bytes], hangs: Sentences, problems: Sentences) -> ASGIApp:
    """Return the three addresses as an ASGI application.

    Args:
        metrics: returns the metrics in the text format.
        hangs: returns a sentence for each part that hangs.
        problems: returns those sentences, and others for what a restart does not mend.
    """

    def exposition(_request: Request) -> Response:
        return Response(metrics(), media_type=EXPOSITION)

    def answered(sentences: Sentences) -> Callable[[Request], Response]:
        def answer(_request: Request) -> Response:
            trouble = sentences()
            return PlainTextResponse("".join(f"{line}\n" for line in trouble or ["ok"]), 503 if trouble else 200)

        return answer

    return Starlette(
        routes=[
            Route("/metrics", exposition),
            Route("/healthz", answered(hangs)),
            Route("/readyz", answered(problems)),
        ]
    )
