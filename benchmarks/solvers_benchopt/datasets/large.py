from benchmark_utils.task_data import TaskData


class Dataset(TaskData):
    """2,500 users x 270 items x 150 features, k = 10."""

    name = "large"
    parameters = {"task": ["H", "H-20%"], "seed": [0]}
