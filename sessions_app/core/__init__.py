"""Plain Python: what a run is, formats, replay plans, compare, findings, reports. No Django here."""
