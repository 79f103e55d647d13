"""Forecasts of many series at once (rates, machine speeds), with quantiles.

A *recipe* (:class:`headgate.forecasting.holt.Holt` and others) is a frozen value that makes a model for so many series;
:func:`headgate.forecasting.online.start` puts intervals and the reset after changes around it. Everything here is
deterministic: time is counted in steps, and nothing is drawn at random but by the oracle, from its seed.
"""
