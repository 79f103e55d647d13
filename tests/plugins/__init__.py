"""Tests of the packages in plugins/."""
