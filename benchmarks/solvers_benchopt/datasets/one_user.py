from benchmark_utils.task_data import TaskData


class Dataset(TaskData):
    """One user, 100,000 negatives, 1,000 positives: top 500 (T), all negatives (L)."""

    name = "one_user"
    parameters = {"task": ["T", "L"], "seed": [0]}
