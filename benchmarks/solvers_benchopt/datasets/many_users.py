from benchmark_utils.task_data import TaskData


class Dataset(TaskData):
    """600 users x 70 items x 90 features, k = 8; heavy-tailed noise; labels of some users wrong."""

    name = "many_users"
    parameters = {"task": ["M", "M-heavy", "M-mislabelled"], "seed": [0]}
