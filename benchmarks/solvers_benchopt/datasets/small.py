"""Problems small enough to be written out in full, S with several users, P with one."""

from benchmark_utils.tasks import TASKS
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Problems small enough to be written out in full, S with several users, P with one."""

    name = "small"
    parameters = {"task": ["S", "P"], "seed": [0]}

    def get_data(self):
        task = TASKS[self.task]
        lists = task.generate(self.seed)
        return {"X": lists.X, "y": lists.y, "groups": lists.groups, "k": task.k}
