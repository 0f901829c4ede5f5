"""600 users x 70 items x 90 features, k = 8; heavy-tailed noise; labels of some users wrong."""

from benchmark_utils.tasks import TASKS
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """600 users x 70 items x 90 features, k = 8; heavy-tailed noise; labels of some users wrong."""

    name = "many_users"
    parameters = {"task": ["M", "M-heavy", "M-mislabelled"], "seed": [0]}

    def get_data(self):
        task = TASKS[self.task]
        lists = task.generate(self.seed)
        return {"X": lists.X, "y": lists.y, "groups": lists.groups, "k": task.k}
