"""Grids of trainings from one TOML file: run, resume, examine, report."""
