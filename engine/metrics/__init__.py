"""What a run says of itself: Prometheus metrics, and whether its parts work. Only `run` and `store` need a package."""
