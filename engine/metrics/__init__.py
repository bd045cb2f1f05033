"""What a run says of itself: Prometheus metrics, and whether its parts work."""

from engine.metrics.health import Health, SignsOfLife
from engine.metrics.run import RunMetrics
from engine.metrics.store import StoreCollector

__all__ = ["Health", "RunMetrics", "SignsOfLife", "StoreCollector"]
