"""The JSON API: bearer keys in, plain objects out. Cookies mean nothing here."""
