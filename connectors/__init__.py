"""Systems that lines come from and people are told through: one folder each, named as `type:` in the configuration."""
