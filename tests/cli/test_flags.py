"""Settings in messages are options of commands, at the command line alone."""

import pytest

from structsvm_papk.cli._shared.flags import in_flags

SENTENCES = [
    ('train with missing="lowest"', "train with --missing lowest"),
    ("left out with ignore=['the title']", "left out with --ignore 'the title'"),
    (r"ignore=['it\'s']", """--ignore 'it'"'"'s'"""),
    ("ignore=['a', \"b'c\"] leaves", """--ignore a --ignore 'b'"'"'c' leaves"""),
    ("groups= is missing: give groups='one_list'", "--group is missing: give --one-list"),
    ("the column of users (groups=) is", "the column of users (--group) is"),
    ("depth=12 is above every list", "--depth 12 is above every list"),
    ("Give curves=None, or", "Give --curves none, or"),
    ("write PAPKRanker(missing='lowest')", "write PAPKRanker(missing='lowest')"),
    ("my_depth=3, data.label=1 and k=5 stay", "my_depth=3, data.label=1 and k=5 stay"),
]


@pytest.mark.parametrize(("said", "shown"), SENTENCES)
def test_settings_are_shown_as_options(said, shown):
    assert in_flags(said) == shown
