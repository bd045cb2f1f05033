"""Sources of log lines and receivers of notifications: one folder for each system, named as `type:` in the configuration."""
