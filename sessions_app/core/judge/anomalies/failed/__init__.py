"""Calls that failed, were refused or found nothing, and whether the answer says so."""
