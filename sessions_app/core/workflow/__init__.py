"""The way from a complaint to a fix that stays: seven steps, what was done at each, and what is missing.

1 gather evidence  2 extract the session  3 build the replay model  4 run a deterministic replay
  ↑                                                        reproduces? yes → 5 debug → 7 fix and regression test
  └────────────────── new attempt ←────────────────────────────────── no → 6 check external factors
"""
