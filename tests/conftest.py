"""Which tests run where; what they share is in `helpers`."""

import sys

import pytest

# Files, processes and words, whatever the processor. All other tests, new ones too, are `numeric`:
# tools/machines.py runs them on every emulated machine.
ANY_MACHINE = {
    *("test_annotations", "test_benchmarks", "test_checkpoint", "test_commands", "test_evaluate"),
    *("test_scale", "test_cluster", "test_dask_collections", "test_ranking_data", "test_displays"),
    *("test_fingerprint", "test_frames", "test_hooks", "test_model_file"),
    *("test_partitions", "test_processes", "test_readers", "test_report_page", "test_rerun"),
    *("test_resume", "test_architecture", "test_public_names", "test_many_columns"),
    *("test_validation", "test_running_time", "test_streaming", "test_estimator"),
    *("test_export", "test_rectools", "test_rerank"),
    *("test_searches", "test_conformance"),  # searches of their own, run by hand at full length
}
# Slow, and the same arithmetic as in shorter tests, or whole numbers only: once is enough.
REPEATS = {
    "test_a_worker_that_is_killed_in_mid_solve_changes_nothing",
    "test_results_depend_on_the_seed_only",
    "test_ramp_of_one_user_against_the_global_optimum",
    "test_existence_against_subset_enumeration_on_200_instances",
    "test_greedy_combines_two_rankers_that_fail_alone",
}
# Signals, pipes, devices and permissions that Windows has not; nor the limits of tests/stress.
POSIX = {
    *("test_a_pipe_is_no_file", "test_permissions_and_links_are_kept", "test_check_writable"),
    *("test_new_file_follows_the_umask", "test_a_worker_that_is_killed_is_told"),
    *("test_a_worker_that_is_killed_in_mid_fit_changes_nothing",),
    *("test_data_that_changed_when_it_has_to_be_loaded_again",),
    *("test_files_that_are_gone_when_they_have_to_be_loaded_again",),
    *("test_a_fit_goes_on_with_another_scheduler",),
}
WINDOWS = sys.platform == "win32"
collect_ignore = ["stress"] if WINDOWS else []


def pytest_collection_modifyitems(items):
    for item in items:
        if WINDOWS and item.originalname in POSIX:
            item.add_marker(pytest.mark.skip(reason="needs a POSIX system"))
        if item.path.stem not in ANY_MACHINE and item.name not in REPEATS:
            item.add_marker(pytest.mark.numeric)
