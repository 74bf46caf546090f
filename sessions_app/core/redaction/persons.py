"""What may lead to a person and often does not: phone numbers and IP addresses. Off until a project wants it."""

import re

from .rules import TextRule

_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = re.compile(rf"(?<![\w.]){_BYTE}(?:\.{_BYTE}){{3}}(?![\w.]*\w)")
PHONE = re.compile(r"(?<![\w+])\+[1-9](?:[ ().-]{0,2}[0-9]){7,14}(?!\w)")

IPV4_RULE = TextRule(name="ip_address", patterns=(IPV4,))
PHONE_RULE = TextRule(name="phone", patterns=(PHONE,), may_hit=lambda text: "+" in text)
