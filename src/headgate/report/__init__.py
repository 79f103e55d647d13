"""Pictures of dataflows: as text, as Mermaid, as SVG."""
