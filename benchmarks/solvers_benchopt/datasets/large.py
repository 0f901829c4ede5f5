"""2,500 users x 270 items x 150 features, k = 10."""

from benchmark_utils.tasks import TASKS
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """2,500 users x 270 items x 150 features, k = 10."""

    name = "large"
    parameters = {"task": ["H", "H-20%"], "seed": [0]}

    def get_data(self):
        task = TASKS[self.task]
        lists = task.generate(self.seed)
        return {"X": lists.X, "y": lists.y, "groups": lists.groups, "k": task.k}
