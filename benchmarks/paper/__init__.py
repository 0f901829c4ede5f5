"""The tables and the figure of the paper, and the methods that it compares with.

``python -m benchmarks paper table1``, ``table2``, ``figure1``, ``table3 FOLDER``; `docs/paper.md`
has what they gave.
"""
