"""Lists of several runs, joined with holes, and the methods that put them into one order."""
