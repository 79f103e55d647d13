"""The loop that deploys, measures, corrects profiles and plans again until a target holds (P-DEPLOY, section 4)."""
