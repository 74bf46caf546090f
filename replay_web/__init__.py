"""Puts the parts together: settings, addresses, the worker's application, the services of `manage.py up`."""
