"""Plans: YAML files read into typed settings."""
