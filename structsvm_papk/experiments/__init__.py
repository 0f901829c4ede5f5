"""The paper's tables and figures, and studies of our own, from the rooms below.

Each module is one study: settings in, rows out; the commands print them. May import everything but
the commands.
"""
