"""What `manage.py up` runs: private services, the web server and the worker, watched and restarted.

Nothing in here imports Django: the supervisor lives as long as the product and should weigh little.
"""
