"""The common part of the data sets in the benchmark."""

from benchopt import BaseDataset

from benchmark_utils.tasks import TASKS


class TaskData(BaseDataset):
    """Some of the tasks, by name and seed."""

    def get_data(self):
        task = TASKS[self.task]
        lists = task.generate(self.seed)
        return {"X": lists.X, "y": lists.y, "groups": lists.groups, "k": task.k}
