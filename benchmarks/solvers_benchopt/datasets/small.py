from benchmark_utils.task_data import TaskData


class Dataset(TaskData):
    """Problems small enough to be written out in full, S with several users, P with one."""

    name = "small"
    parameters = {"task": ["S", "P"], "seed": [0]}
