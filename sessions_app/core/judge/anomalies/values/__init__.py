"""Values that went another way: other ids, dates, rows, records, sums and counts than were asked for or told."""
