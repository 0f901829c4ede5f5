"""What the groups share: options and output of commands, finished parts, Markdown."""
