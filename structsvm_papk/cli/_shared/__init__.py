"""What the commands share: options, the console, the record of a run, files of scores.

It may import every room below the commands.
"""
