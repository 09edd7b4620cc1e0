"""Tests of the stages around a turn's work."""
