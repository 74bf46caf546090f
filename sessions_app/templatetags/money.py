"""Amounts of money."""

from __future__ import annotations

from decimal import Decimal

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sessions_app.core.pricing import Cost

register = template.Library()


@register.filter
def dollars(amount: Decimal) -> str:
    """Cents where they say enough; two digits that count of what is less: `$1,204.50`, `$0.0031`."""
    if not amount or abs(amount) >= Decimal("0.995"):
        return f"${amount:,.2f}"
    digits = max(2, 1 - amount.adjusted())
    return f"${amount:.{digits}f}"


@register.filter
def cost(found: Cost | None) -> SafeString | str:
    """What is known of it; what it leaves out is said beside it."""
    if found is None or not found.is_known:
        return format_html('<em class="missing" title="{}">unknown</em>', "no price, or no tokens captured")
    if found.is_whole:
        return dollars(found.dollars)
    words = f"{found.unpriced} model call{'' if found.unpriced == 1 else 's'} without a price or tokens"
    return format_html('<span title="{}">at least {}</span>', words, dollars(found.dollars))
