"""`make lab`: tocsin against real Kafka brokers, from log lines to what Slack shows."""
