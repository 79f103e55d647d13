"""From a rate to machines: profiles of operators, how many instances each needs, and packing them on machines.

Reference: X. Liu and R. Buyya, *Performance-oriented deployment of streaming applications on cloud*, 2019 (P-DEPLOY).
"""
